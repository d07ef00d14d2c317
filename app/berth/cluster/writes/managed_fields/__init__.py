"""Managed fields: sets of fields, how objects merge, and the entries of ``managedFields``.

The rules are those of KEP-555 (server-side apply) and of structured-merge-diff, which a
kube-apiserver applies with:

- :mod:`.field_sets`: sets of fields, in the form that ``fieldsV1`` has;
- :mod:`.nodes`: what a schema says of ownership, as objects that find, compare, merge and remove
  fields; :mod:`.compile` makes them of the schemas;
- :mod:`.checks`: whether an applied configuration fits;
- :mod:`.entries`: ``metadata.managedFields``, read and written;
- :mod:`.changes`, :mod:`.applying`: what a write, or an applied configuration, does to the fields
  of all managers;
- :mod:`.last_applied`, :mod:`.scale`: what is particular about kubectl and the scale subresource.

:class:`~berth.cluster.writes.field_manager.FieldManager` puts them together. Nothing here knows the
store, or kinds by name.
"""
