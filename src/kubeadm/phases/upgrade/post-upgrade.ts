import { AppError } from '../../../base/errors.ts';
import { isJsonObject, parseJsonObject } from '../../../base/json.ts';
import { printable } from '../../../base/text/printable.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import { observe } from '../../../host/access/observe.ts';
import { defineFact } from '../../../host/facts/fact.ts';
import type { HttpFact } from '../../../host/facts/query.ts';
import { definePhase, type PhaseContext } from '../../../host/phase.ts';
import { imageTag, versionTag } from '../../control-plane/images.ts';
import type { StaticPodName } from '../../control-plane/paths.ts';
import { mirrorPodRef, readMirrorPod } from '../../upgrade/static-pod-state.ts';
import { staticPodPause } from './wait-static-pod.ts';

export interface PostUpgradeInput {
  readonly nodeName: string;
  /** `v1.36.2` */
  readonly version: string;
  /** The images that the components of the selected phases must run; empty: the run upgrades no component. */
  readonly images: ReadonlyMap<StaticPodName, string>;
  /** Where the API server of the host reports its version; null: not known. */
  readonly versionUrl: string | null;
  /** The API server must report the version: its image is not replaced by a patch. */
  readonly checksVersion: boolean;
}

const NAME = 'post-upgrade';

/**
 * Verifies the result of an upgrade by the running Pods and the version that the API server reports. Plans no changes. A run
 * that upgrades no component has no result to verify.
 * kubeadm 1.36: phase of this name (which removes kubelet flags of older versions; here kubelet-config removes them).
 */
export const postUpgrade = definePhase<PostUpgradeInput, null>({
  name: NAME,
  short: 'Verify the versions of the running components',
  observe: async () => null,
  plan: (_, { images }) =>
    images.size === 0 ? { changes: [], noop: 'nothing to verify: the run upgrades no component' } : { changes: [] },
  verify: async (context, input) => {
    if (input.images.size === 0) return;
    const { reporter, host } = context;
    const [images, version, kubelet] = await Promise.all([imagesOf(context, input), versionOf(context, input), kubeletOf(context, input)]);
    const other = [...input.images].filter(([name, image]) => images.get(name) !== image);
    const reasons = [
      ...other.map(([name, image]) => `${name} runs ${printable(images.get(name) ?? 'no Ready Pod', 200)}, not ${image}`),
      ...(input.checksVersion && 'failed' in version ? [`the version of the API server is unknown: ${version.failed}`] : []),
      ...(input.checksVersion && 'found' in version && versionTag(version.found) !== versionTag(input.version)
        ? [`the API server reports ${version.found}, not ${input.version}`]
        : []),
    ];
    if (reasons.length > 0) {
      const hint = 'Check the Pods with kubectl -n kube-system get pods, then rerun the command';
      throw new AppError({ host: host.name, code: 'UPGRADE_NOT_VERIFIED', message: `${NAME}: ${reasons.join('; ')}`, hint });
    }
    const shown = [...images].map(([name, image]) => `${name} ${imageTag(image)}`).join(', ');
    const server =
      'found' in version
        ? `the API server reports ${version.found}`
        : `the version of the API server is unknown (${Object.values(version).join()})`;
    const message = `running on ${input.nodeName}: ${shown}; ${server}; the kubelet reports ${kubelet ?? 'no version'}`;
    reporter.report({ level: 'info', code: 'UPGRADE_VERIFIED', host: host.name, phase: NAME, message });
    if (kubelet !== null && versionTag(kubelet) !== versionTag(input.version)) {
      const next = `the kubelet of ${input.nodeName} is ${kubelet}: drain the Node, install kubelet ${input.version} on the host, and restart the kubelet`;
      reporter.report({ level: 'info', code: 'KUBELET_UPGRADE_NEXT', host: host.name, phase: NAME, message: next });
    }
  },
});

/** The images of the Ready Pods. */
async function imagesOf({ cluster }: PhaseContext, { images, nodeName }: PostUpgradeInput): Promise<ReadonlyMap<StaticPodName, string>> {
  const found = await Promise.all(
    [...images.keys()].map(async (name) => {
      const pod = readMirrorPod((await cluster?.get(mirrorPodRef(name, nodeName))) ?? null, name);
      return [name, pod?.isReady === true ? pod.image : null] as const;
    }),
  );
  return new Map(found.flatMap(([name, image]) => (image === null ? [] : [[name, image] as const])));
}

/** `hidden`: not shown without credentials; `failed`: for another reason. Both as clauses. */
type FoundVersion = { readonly found: string } | { readonly hidden: string } | { readonly failed: string };

/** An API server that runs may answer late while the kubelet restarts. */
const VERSION_MS = 30_000;

/**
 * The version that the API server of this host reports: the cluster may be reached through a load balancer. If the version
 * is not shown without credentials, the image of the Ready Pod shows it.
 */
function versionOf(context: PhaseContext, { versionUrl }: PostUpgradeInput): Promise<FoundVersion> {
  if (versionUrl === null) return Promise.resolve({ hidden: 'its manifest has no health endpoint' });
  const fact = defineFact({ get: { kind: 'http', url: versionUrl, timeoutSeconds: 5 } }, ({ get }): HttpFact => get);
  return waitUntil<FoundVersion, string>(
    { ...context, phase: NAME },
    {
      probe: async () => {
        const version = readVersion(await observe(context.host, fact, context.signal), versionUrl);
        return 'failed' in version ? { pending: version.failed } : { done: version };
      },
      timeoutMs: VERSION_MS,
      pauseMs: staticPodPause(context.host),
      timedOut: (failed) => ({ failed }),
    },
  );
}

function readVersion(answer: HttpFact, url: string): FoundVersion {
  if ('error' in answer) return { failed: `${url}: ${printable(answer.error, 200)}` };
  if (answer.status === 401 || answer.status === 403) return { hidden: `${url} requires credentials` };
  const gitVersion = answer.status === 200 ? parseJsonObject(answer.body)?.gitVersion : undefined;
  if (typeof gitVersion === 'string') return { found: printable(gitVersion, 60) };
  return { failed: `${url} answers ${answer.status}${answer.status === 200 ? ' without gitVersion' : ''}` };
}

async function kubeletOf({ cluster }: PhaseContext, { nodeName }: PostUpgradeInput): Promise<string | null> {
  const node = await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
  const info = isJsonObject(node?.status) && isJsonObject(node.status.nodeInfo) ? node.status.nodeInfo : {};
  return typeof info.kubeletVersion === 'string' ? printable(info.kubeletVersion, 60) : null;
}
