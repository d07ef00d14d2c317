"""Custom resources: what a CustomResourceDefinition says, and what its schemas do to objects.

A schema here is the JSON of ``JSONSchemaProps`` as the definition has it, a *structural schema*: it
has been evaluated, so that everybody else walks it (:mod:`.walk`) without asking.

- :mod:`.definition`: the rules of CustomResourceDefinitions themselves;
- :mod:`.structural`, :mod:`.rule_validation`: those of the schemas in them;
- :mod:`.pruning`, :mod:`.defaulting`, :mod:`.validation`, :mod:`.list_types`, :mod:`.rules`: what
  becomes of an object on its way in, in this order;
- :mod:`.fields`: the schema in the types of :mod:`berth.cluster.schemas`;
- :mod:`.columns`: what ``kubectl get`` shows.

Nothing here knows the store or HTTP. :mod:`berth.cluster.kinds.custom` makes kinds of it.

Sources: ``k8s.io/apiextensions-apiserver`` (``pkg/apiserver/schema``, ``pkg/apis/apiextensions``)
and ``k8s.io/kube-openapi/pkg/validation``.
"""
