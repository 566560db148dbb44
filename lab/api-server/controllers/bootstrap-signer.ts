import { Secret } from '../../../src/base/text/secret.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { CLUSTER_INFO_NAME, KUBE_PUBLIC, KUBE_SYSTEM } from '../../../src/kube/well-known.ts';
import { signDetached } from '../../../src/kubeadm/token/jws.ts';
import { bootstrapTokenOf } from '../authenticate.ts';
import { entriesOf } from '../members.ts';
import { CONTROLLER, type ControllerContext, typeOf } from './controller.ts';

const CONFIG_MAPS = typeOf('v1', 'ConfigMap');
const SECRETS = typeOf('v1', 'Secret');
const CLUSTER_INFO = { namespace: KUBE_PUBLIC, name: CLUSTER_INFO_NAME };
const KUBECONFIG = 'kubeconfig';
const SIGNATURE = 'jws-kubeconfig-';

/**
 * Keeps a signature of kube-public/cluster-info for every bootstrap token with the usage `signing`.
 * @param delayMs delay of the controller; 0: synchronously, before the response to the write that caused it
 * @see kubernetes/kubernetes pkg/controller/bootstrap/bootstrapsigner.go (1.36)
 */
export function startBootstrapSigner(context: ControllerContext, delayMs = 0): void {
  const { store, clock, signal } = context;
  let waiting = false;
  const signLater = async () => {
    if (waiting) return;
    waiting = true;
    await clock.sleep(delayMs, signal).catch(() => {});
    waiting = false;
    if (!signal.aborted) sign(context);
  };
  const stop = store.subscribe(({ resource, object }) => {
    const concerns = resource === SECRETS ? object.metadata.namespace === KUBE_SYSTEM : resource === CONFIG_MAPS && isClusterInfo(object);
    if (!concerns) return;
    if (delayMs > 0) void signLater();
    else sign(context);
  });
  signal.addEventListener('abort', stop);
  if (delayMs > 0) void signLater();
  else sign(context);
}

function sign({ store, registry, clock }: ControllerContext): void {
  const clusterInfo = store.get(CONFIG_MAPS, CLUSTER_INFO.namespace, CLUSTER_INFO.name);
  if (clusterInfo === null) return;
  const data = new Map(entriesOf(clusterInfo, 'data'));
  const payload = data.get(KUBECONFIG);
  if (payload === undefined) return;
  const tokens = store.list(SECRETS, KUBE_SYSTEM).map((secret) => bootstrapTokenOf(secret, clock.now()));
  const signatures = tokens.flatMap((token) =>
    token?.usages.includes('signing')
      ? [[`${SIGNATURE}${token.id}`, signDetached(token.id, new Secret(token.secret), payload)] as const]
      : [],
  );
  const others = [...data].filter(([key]) => !key.startsWith(SIGNATURE));
  const signed: KubeObject = { ...clusterInfo, data: Object.fromEntries([...others, ...signatures]) };
  registry.update(CONFIG_MAPS, CLUSTER_INFO, signed, { user: CONTROLLER });
}

function isClusterInfo({ metadata }: KubeObject): boolean {
  return metadata.namespace === CLUSTER_INFO.namespace && metadata.name === CLUSTER_INFO.name;
}
