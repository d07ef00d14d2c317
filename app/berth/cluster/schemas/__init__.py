"""Schemas of the API's objects: their fields, as data.

``kubernetes-1.37.json.gz`` says which kinds a server of that release serves by default, and of each
object type the fields with their types, defaults, enums, list types, merge keys and protobuf
numbers; there is one such file for each release. ``descriptions.json.gz`` says what they are for.
All are written by :mod:`~berth.cluster.schemas.compile` and never by hand; what it reads of Go's
own types is in ``go-types.json.gz``. How messages show values of them is in ``go-values.json``.

- :mod:`~berth.cluster.schemas.types`: the objects that a schema is made of;
- :mod:`~berth.cluster.schemas.builtin`: those of the kinds that a server has from the start;
- :mod:`~berth.cluster.schemas.checks`, :mod:`~berth.cluster.schemas.structs`: whether a body fits;
- :mod:`~berth.cluster.schemas.presence`, :mod:`~berth.cluster.schemas.quantities`: how the API's
  types write what they have read;
- :mod:`~berth.cluster.schemas.protobuf`: bodies and answers in Kubernetes' protobuf.

Nothing here knows kinds by name, the store or HTTP.
"""
