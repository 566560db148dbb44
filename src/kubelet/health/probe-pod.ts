import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { upTo } from '../../base/text/up-to.ts';
import type { KubeObject } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { objectAt, objectsAt } from '../documents/values.ts';
import { shortened } from '../facts/kubelet-failure.ts';
import { PROBE_LABEL } from '../workload/pod.ts';

/**
 * The result of a probe pod.
 *
 * - `started`: its container was seen running
 * - `starting`: not yet, and nothing failed so far
 * - `failed`: the kubelet rejected the pod or could not start its sandbox or container
 * - `unusable`: it shows nothing about the kubelet, for example because its image is not available
 */
export type ProbeResult =
  | { readonly state: 'started' }
  | { readonly state: 'starting'; readonly seen: string }
  | { readonly state: 'failed'; readonly why: string }
  | { readonly state: 'unusable'; readonly why: string };

/** Namespace of probe pods: it exists in every cluster. */
export const PROBE_NAMESPACE = KUBE_SYSTEM;
/** Name of the static probe pod; the API server shows it as `NAME-NODE`. */
export const PROBE_NAME = 'kubeletadm-probe';

/**
 * A pod that shows whether a kubelet can start new pods: a sandbox with a network of its own, the DNS
 * configuration of the kubelet, and one container. It requests nothing, has no permissions and no token, and
 * passes the restricted Pod Security Standard.
 * @param image its program waits, and it is normally on the node: the pause image
 */
export function probePod(name: string, image: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: PROBE_NAMESPACE, labels: { [PROBE_LABEL]: 'true' } },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 0,
      tolerations: [{ operator: 'Exists' }],
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65535,
        runAsGroup: 65535,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'probe',
          image,
          imagePullPolicy: 'IfNotPresent',
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true },
        },
      ],
    },
  };
}

const IMAGE_MISSING = /^(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|ImageInspectError|RegistryUnavailable)$/;
const NOT_STARTED = /^(?:ContainerCreating|PodInitializing|)$/;

/**
 * Reads the result of a probe pod.
 * @param pod null: the API server does not have it yet
 */
export function readProbe(pod: KubeObject | null): ProbeResult {
  if (pod === null) return { state: 'starting', seen: 'the kubelet has not reported the pod' };
  const { phase, reason, message } = objectAt(pod, 'status');
  const [container = {}] = objectsAt(pod, 'status.containerStatuses');
  const { running, waiting, terminated } = objectAt(container, 'state');
  if (isJsonObject(running)) return { state: 'started' };
  if (isJsonObject(terminated)) {
    // The runtime reports a container whose program could not be started as StartError or ContainerCannotRun.
    const why = describe(terminated.reason, terminated.message);
    return /^(?:StartError|ContainerCannotRun)$/.test(String(terminated.reason)) ? { state: 'failed', why } : { state: 'started' };
  }
  if (phase === 'Failed') return { state: 'failed', why: describe(reason, message) };
  if (isJsonObject(waiting)) {
    const why = describe(waiting.reason, waiting.message);
    if (IMAGE_MISSING.test(String(waiting.reason)))
      return { state: 'unusable', why: `the image of the probe pod is not available: ${why}` };
    if (!NOT_STARTED.test(String(waiting.reason ?? ''))) return { state: 'failed', why };
  }
  return { state: 'starting', seen: sandboxIssue(objectAt(pod, 'status')) };
}

function sandboxIssue(status: JsonObject): string {
  const sandbox = objectsAt(status, 'conditions').find(({ type }) => type === 'PodReadyToStartContainers');
  return sandbox?.status === 'False'
    ? 'its sandbox is not ready'
    : `its container has not started (${String(status.phase ?? 'no status')})`;
}

function describe(reason: unknown, message: unknown): string {
  return [reason, message].filter((text) => typeof text === 'string' && text !== '').join(': ') || 'no reason reported';
}

const MAX_ERROR_LENGTH = 300;

/**
 * The kubelet's last error about a pod in its log.
 * @param log lines of the kubelet, the newest last
 * @param pod `NAMESPACE/NAME`
 * @returns the message without its enclosing ones, at most 300 characters; null: no error about the pod
 */
export function podErrorIn(log: string, pod: string): string | null {
  const line = log.split('\n').findLast((each) => each.includes(`pod="${pod}"`) && each.includes(' err="'));
  if (line === undefined) return null;
  const quoted = upTo(line.slice(line.indexOf(' err="') + ' err="'.length), '" pod="');
  // Each error is quoted inside the enclosing one.
  const text = quoted.replaceAll('\\', '');
  const innermost = text.slice(text.lastIndexOf(' desc = ') + 1).replace(/^desc = /, '');
  return shortened(trimTrailing(innermost, '" '), MAX_ERROR_LENGTH);
}
