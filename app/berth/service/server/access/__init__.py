"""Access to a port: TLS serving, authentication and authorization (spec §7.2, §7.3).

What lives here: kube-scheduler's secure serving with delegated authentication (TokenReview, client
certificates, request headers) and delegated authorization (SubjectAccessReview). What must not:
endpoints. Neighbours: ``berth.kube.client.reviews`` (asks the API server),
``berth.runtime.http_server``.

Decision (2026-11): without a kubeconfig of their own, reviews go to the API server that pods are
scheduled on, and the scheduler asks for them as itself; because outside of a cluster nobody could
be known otherwise; instead of turning delegation off there, as kube-scheduler does.
"""
