import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { definePhase } from '../../host/phase.ts';
import type { Change, HostChange } from '../../host/plan/change.ts';
import { type DesiredFile, diffFile } from '../../host/plan/diff-file.ts';
import { revertChanges } from '../../host/plan/revert.ts';
import { KUBELET_CLIENT_PEM, KUBELET_CONF } from '../../kube/well-known.ts';
import { type HealthTarget, waitForHealthyKubelet } from '../../kubelet/health/wait-healthy.ts';
import { type WaitBootstrapInput, waitForIdentity } from './kubelet-wait-bootstrap.ts';

export interface RenewKubeletInput {
  /** Null: the certificate is valid and nothing is changed; `noop` gives the reason. */
  readonly bootstrapConf: DesiredFile | null;
  readonly noop: string;
  /** Directory for the previous credentials of the kubelet. */
  readonly backupDirectory: string;
  readonly health: HealthTarget;
  readonly wait: WaitBootstrapInput;
}

interface Facts {
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly init: 'systemd' | 'openrc' | null;
}

const NAME = 'renew-kubelet';

/**
 * Repeats the TLS bootstrap of the kubelet: its kubeconfig and certificate are moved to another directory and
 * replaced by a bootstrap kubeconfig. If no certificate is issued they are restored without a kubelet
 * restart, because a restarted kubelet might fail to start.
 */
export const renewKubelet = definePhase<RenewKubeletInput, Facts>({
  name: NAME,
  short: 'Repeat the TLS bootstrap of the kubelet',
  observe: ({ host, signal }, { bootstrapConf }) => {
    const paths = [KUBELET_CONF, KUBELET_CLIENT_PEM, ...(bootstrapConf === null ? [] : [bootstrapConf.path])];
    return observe(host, combineFacts({ files: fileFacts(paths), init: initSystem }), signal);
  },
  plan: ({ files, init }, { bootstrapConf, noop, backupDirectory }) => {
    if (bootstrapConf === null) return { changes: [], noop };
    const reason = 'the kubelet repeats its TLS bootstrap';
    const aside = [KUBELET_CONF, KUBELET_CLIENT_PEM].filter((path) => (files.get(path) ?? null) !== null);
    const write = diffFile(files.get(bootstrapConf.path) ?? null, bootstrapConf);
    const changes: readonly Change[] = [
      ...(aside.length === 0
        ? []
        : [
            {
              kind: 'make-directory',
              path: backupDirectory,
              mode: 0o700,
              owner: 'root:root',
              reason: 'for the previous credentials of the kubelet',
            } as const,
          ]),
      ...(write === null ? [] : [write]),
      ...aside.map((path) => ({ kind: 'move-file', path, to: `${backupDirectory}/${path.replace(/^.*\//, '')}`, reason }) as const),
      ...(init === 'systemd' ? [{ kind: 'restart-unit', unit: 'kubelet', reason } as const] : []),
    ];
    return { changes };
  },
  verify: async (context, { bootstrapConf, health, wait }, { init }) => {
    if (bootstrapConf === null || init !== 'systemd') return;
    await waitForIdentity(context, wait);
    await waitForHealthyKubelet(context, NAME, health);
  },
  undo: (_, applied: readonly HostChange[]) => revertChanges(applied),
});
