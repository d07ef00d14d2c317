// Watches the pods of a namespace with the informer of the official JavaScript client, creates one,
// and prints a line for each change until the pod is deleted.
import * as k8s from '@kubernetes/client-node';

const [kubeconfig, namespace] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);

const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, () =>
  core.listNamespacedPod({ namespace }),
);
informer.on('add', (pod) => console.log(`add ${pod.metadata.name}`));
informer.on('update', async (pod) => {
  if (pod.status.phase !== 'Running' || pod.metadata.deletionTimestamp) return;
  console.log(`running ${pod.metadata.name}`);
  await core.deleteNamespacedPod({ name: pod.metadata.name, namespace, gracePeriodSeconds: 0 });
});
informer.on('delete', async (pod) => {
  console.log(`delete ${pod.metadata.name}`);
  process.exit(0);
});
informer.on('error', (error) => {
  console.error(error);
  process.exit(1);
});
await informer.start();
await core.createNamespacedPod({
  namespace,
  body: { metadata: { name: 'one' }, spec: { containers: [{ name: 'c', image: 'web:1' }] } },
});
