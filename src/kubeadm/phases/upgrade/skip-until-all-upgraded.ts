import { printable } from '../../../base/text/printable.ts';
import { API_PAUSE, waitUntil } from '../../../base/wait-until.ts';
import { type Phase, type PhaseContext, planOnly } from '../../../host/phase.ts';
import { type Cluster, firstThenPollClient } from '../../../kube/cluster.ts';
import { CONTROL_PLANE_LABEL } from '../../../kube/node-marks.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import { imageTag } from '../../control-plane/images.ts';
import { readMirrorPod } from '../../upgrade/static-pod-state.ts';

/** The control planes of a cluster except the one of the run. */
export interface OtherControlPlanes {
  /** The control plane of the run. */
  readonly nodeName: string;
  /** The image of kube-apiserver after the upgrade. */
  readonly image: string;
  /**
   * Waits for upgraded API servers that are not Ready yet, and warns (ADDONS_NOT_UPGRADED) if the add-ons must wait for a
   * later run. Further calls return the result of the first: several phases depend on it.
   */
  waitForUpgrade(context: PhaseContext, cluster: Cluster, phase: string): Promise<void>;
}

/**
 * @param timeoutMs the longest wait for API servers that are upgraded but not Ready
 */
export function otherControlPlanes(about: {
  readonly nodeName: string;
  readonly image: string;
  readonly timeoutMs: number;
}): OtherControlPlanes {
  let waiting: Promise<void> | null = null;
  return {
    ...about,
    waitForUpgrade: (context, cluster, phase) => {
      waiting ??= waitForOthers({ ...context, phase }, cluster, about);
      return waiting;
    },
  };
}

/**
 * Skips a phase until all other control planes run the new API server: the add-ons serve all nodes, whose kubelets may
 * still use an older API server.
 * @param select null: the phase deploys nothing
 * @see kubeadm 1.36 phases/upgrade/postupgrade.go UnupgradedControlPlaneInstances
 */
export function skipUntilAllUpgraded<Whole>(phase: Phase<Whole>, select: (input: Whole) => OtherControlPlanes | null): Phase<Whole> {
  return {
    ...phase,
    ready: async (context, input) => {
      await phase.ready(context, input);
      if (context.cluster !== null) await select(input)?.waitForUpgrade(context, context.cluster, phase.name);
    },
    inspect: async (context, input) => {
      const others = select(input);
      // Without an API server the phase itself is deferred.
      if (context.cluster === null || others === null) return phase.inspect(context, input);
      const left = await notUpgraded(context.cluster, others);
      if (left.length === 0) return phase.inspect(context, input);
      const state = left.some(({ runsImage }) => !runsImage) ? 'upgraded' : 'Ready';
      return planOnly({ changes: [], noop: `skipped until all control planes are ${state}: ${clausesOf(left)}` });
    },
  };
}

/** A control plane whose API server is not upgraded, or not Ready. */
interface NotUpgraded {
  readonly name: string;
  /** The Pod has the new image, but is not Ready. */
  readonly runsImage: boolean;
  /** `runs v1.35.6` */
  readonly why: string;
}

/**
 * The other control planes without a Ready Pod of kube-apiserver with the image. kubeadm compares only images of existing
 * Pods.
 */
async function notUpgraded(
  cluster: Cluster,
  { nodeName, image }: Pick<OtherControlPlanes, 'nodeName' | 'image'>,
): Promise<readonly NotUpgraded[]> {
  const [pods, nodes] = await Promise.all([
    cluster.list(
      { apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM },
      { labelSelector: 'component=kube-apiserver,tier=control-plane' },
    ),
    cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: CONTROL_PLANE_LABEL }),
  ]);
  const found = new Map(
    pods.items.map((pod) => {
      const name = (pod.spec as { readonly nodeName?: string } | undefined)?.nodeName ?? pod.metadata.name;
      return [name, readMirrorPod(pod, 'kube-apiserver')] as const;
    }),
  );
  const all = new Set([...found.keys(), ...nodes.items.map(({ metadata }) => metadata.name)]);
  return [...all].toSorted().flatMap((name): readonly NotUpgraded[] => {
    if (name === nodeName) return [];
    const pod = found.get(name) ?? null;
    if (pod === null) return [{ name, runsImage: false, why: 'has no Pod of kube-apiserver' }];
    if (pod.image !== image) return [{ name, runsImage: false, why: `runs ${shortImage(pod.image ?? 'no image', image)}` }];
    return pod.isReady ? [] : [{ name, runsImage: true, why: `is not Ready (${pod.state})` }];
  });
}

/** The tag of an image, if it shows the difference to the expected one. */
function shortImage(image: string, expected: string): string {
  const tag = imageTag(image);
  return printable(tag === '' || tag === imageTag(expected) ? image : tag, 200);
}

function clausesOf(left: readonly NotUpgraded[]): string {
  return left.map(({ name, why }) => `${name} ${why}`).join(', ');
}

async function waitForOthers(
  context: PhaseContext & { readonly phase: string },
  cluster: Cluster,
  about: { readonly nodeName: string; readonly image: string; readonly timeoutMs: number },
): Promise<void> {
  const next = firstThenPollClient(cluster);
  const left = await waitUntil<readonly NotUpgraded[], readonly NotUpgraded[]>(context, {
    probe: async () => {
      const found = await notUpgraded(next() ?? cluster, about);
      // A control plane with another image is upgraded by a later run, which then deploys the add-ons.
      return found.length === 0 || found.some(({ runsImage }) => !runsImage) ? { done: found } : { pending: found };
    },
    timeoutMs: about.timeoutMs,
    pauseMs: API_PAUSE,
    describe: (found, waitedMs) => `waiting for the other control planes, ${Math.round(waitedMs / 1000)} s: ${clausesOf(found)}`,
    timedOut: (found) => found,
  });
  if (left.length === 0) return;
  const { host, reporter, phase } = context;
  const message = `the add-ons are not upgraded: ${clausesOf(left)}. ${nextStep(context, left, about.nodeName)}`;
  reporter.report({ level: 'warning', code: 'ADDONS_NOT_UPGRADED', host: host.name, phase, message });
}

function nextStep({ host }: PhaseContext, left: readonly NotUpgraded[], nodeName: string): string {
  const older = left.flatMap(({ name, runsImage }) => (runsImage ? [] : [name]));
  if (older.length > 0) return `Run kubeletadm upgrade node for ${older.join(', ')}: the last of these runs upgrades the add-ons`;
  const place = host.dial === undefined ? ` on ${nodeName}` : ` --host ${host.name}`;
  return `When all control planes are Ready, run kubeletadm upgrade node phase addon all${place}`;
}
