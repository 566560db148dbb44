import { AppError } from '../../../base/errors.ts';
import { quickAtFirst, waitUntil } from '../../../base/wait-until.ts';
import { listeningPorts } from '../../../host/facts/listening-ports.ts';
import { observe } from '../../../host/observe.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { manifestPath } from '../../control-plane/paths.ts';
import { etcdBackupPath } from '../../upgrade/upgrade-record.ts';
import { observeUpgrade } from './backup-control-plane.ts';
import type { RestoreComponent } from './replace-static-pod.ts';
import { waitForStaticPod } from './wait-static-pod.ts';

export interface RestoreEtcdData {
  readonly phase: string;
  readonly nodeName: string;
  readonly version: string;
  readonly dataDir: string;
  /** Number of members of the etcd cluster before the upgrade; null: not known. */
  readonly memberCount: () => number | null;
  /** Part of the name of the directory that keeps the replaced data. */
  readonly timestamp: string;
  readonly criSocket: string;
  readonly timeoutMs: number;
}

const CLIENT_PORT = 2379;
const STOP_MS = 120_000;

/**
 * Restores the copy of the etcd data, for an etcd that does not start with its previous manifest: the new version may
 * have changed the data. The replaced data is kept. Only for an etcd with a single member: a member of a larger cluster
 * must not return to older data, because it would break the agreement with the other members.
 * @throws (restore) AppError ETCD_DATA_NOT_RESTORED, and the errors of `waitForStaticPod`
 * @see kubeadm 1.36 phases/upgrade/staticpods.go rollbackEtcdData (which restores the data of each cluster)
 */
export function restoreEtcdData(options: RestoreEtcdData): RestoreComponent {
  const { phase, nodeName, version, dataDir, memberCount, timestamp, criSocket, timeoutMs } = options;
  return async (context, { manifest, cause }) => {
    const record = await observeUpgrade(context, version);
    const copy = record === null ? null : etcdBackupPath(record.backup);
    const refuse = (why: string): AppError => {
      const hint = `Restore the member by hand: https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/. ${copy === null ? 'No backup of its data exists' : `The backup of its data is in ${copy} on the host`}`;
      const problem = { host: context.host.name, code: 'ETCD_DATA_NOT_RESTORED', message: `${phase}: ${why}`, hint };
      return new AppError([...cause.problems, problem], { cause });
    };
    if (copy === null) throw refuse('the etcd data was not restored, because it was not copied before the upgrade');
    if (memberCount() !== 1)
      throw refuse('the etcd data was not restored: a member of a cluster with several members must not return to older data');
    const message = `etcd does not start with its previous manifest: restoring its data from ${copy}`;
    context.reporter.report({ level: 'warning', code: 'ETCD_DATA_RESTORED', host: context.host.name, phase, message });
    const path = manifestPath('etcd');
    await context.host.perform([{ kind: 'remove-file', path }]);
    await waitForStop(context, phase);
    const data = `${dataDir}/member`;
    const kept = `${data}.replaced-${timestamp}`;
    await context.host.perform([
      { kind: 'move-file', path: data, to: kept },
      { kind: 'copy-directory', path: `${copy}/member`, to: data },
      manifest,
    ]);
    const content = manifest.kind === 'write-file' ? String(manifest.content) : '';
    const expected = { phase, component: 'etcd', nodeName, manifest: content, replacedHash: null, hash: null } as const;
    await waitForStaticPod(context, { ...expected, criSocket, timeoutMs });
  };
}

async function waitForStop(context: PhaseContext, phase: string): Promise<void> {
  await waitUntil<void, null>(
    { ...context, phase },
    {
      probe: async () => {
        const ports = await observe(context.host, listeningPorts, context.signal);
        return ports?.has(CLIENT_PORT) === true ? { pending: null } : { done: undefined };
      },
      timeoutMs: STOP_MS,
      pauseMs: quickAtFirst({ quickMs: 500, forMs: 10_000, slowMs: 1_000 }),
      describe: (_, waitedMs) => `waiting for etcd to stop, ${Math.round(waitedMs / 1000)} s`,
      timedOut: (_, waitedMs) => {
        const message = `${phase}: etcd still listens on port ${CLIENT_PORT} ${Math.round(waitedMs / 1000)}s after its manifest was removed: its data was not restored`;
        const hint = `Stop its container, then restore the data by hand`;
        throw new AppError({ host: context.host.name, code: 'ETCD_DATA_NOT_RESTORED', message, hint });
      },
    },
  );
}
