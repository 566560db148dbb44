import { SensitiveText } from '../../base/text/secret.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { definePhase } from '../../host/phase.ts';
import type { PhasePlan } from '../../host/plan/change.ts';
import { decodeDataField, parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { clientCertificateFileKubeconfig } from '../../kube/kubeconfig-render.ts';
import { KUBELET_CONF } from '../../kube/well-known.ts';
import { type HealthTarget, waitForStartedKubelet } from '../../kubelet/health/wait-healthy.ts';

export interface KubeletFinalizeInput {
  /** Certificate directory of the kubelet: its flag `cert-dir`, default /var/lib/kubelet/pki. */
  readonly certDir: string;
  /** `rotateCertificates` of its configuration. */
  readonly rotates: boolean;
  readonly health: HealthTarget;
  /** The Node by which the API server may show that the kubelet has started completely. */
  readonly nodeName: string;
}

interface Facts {
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly init: 'systemd' | 'openrc' | null;
}

const NAME = 'kubelet-finalize/enable-client-cert-rotation';

/**
 * Makes kubelet.conf of the first control plane refer to the rotated certificate instead of the initial one.
 * kubeadm 1.36: init phase kubelet-finalize/enable-client-cert-rotation, which does not wait until the
 * kubelet is healthy again.
 */
export const kubeletFinalize = definePhase<KubeletFinalizeInput, Facts>({
  name: NAME,
  short: 'Enable kubelet client certificate rotation',
  observe: ({ host, signal }, { certDir }) =>
    observe(host, combineFacts({ files: fileFacts([KUBELET_CONF, pemPath(certDir)]), init: initSystem }), signal),
  plan: planFinalize,
  verify: async (context, { health, nodeName }, { init }, applied) =>
    init === 'systemd' && applied.length > 0 ? waitForStartedKubelet(context, NAME, health, nodeName) : undefined,
});

function pemPath(certDir: string): string {
  return `${certDir}/kubelet-client-current.pem`;
}

function planFinalize({ files, init }: Facts, { certDir, rotates }: KubeletFinalizeInput): PhasePlan {
  const pem = pemPath(certDir);
  const conf = files.get(KUBELET_CONF) ?? null;
  if (conf?.content === undefined) return { changes: [], deferred: `waits for ${KUBELET_CONF}` };
  if ((files.get(pem) ?? null) === null)
    return rotates
      ? { changes: [], deferred: `waits until the kubelet has written ${pem}` }
      : { changes: [], noop: `${pem} does not exist: the kubelet does not rotate its certificate` };
  const { cluster, user } = resolveContext(parseKubeconfig(conf.content, KUBELET_CONF));
  if (user?.certFile === pem && user.keyFile === pem) return { changes: [], noop: `${KUBELET_CONF} refers to the rotated certificate` };
  const content = new SensitiveText([
    clientCertificateFileKubeconfig({
      clusterName: cluster.name,
      server: cluster.server,
      caPem: decodeDataField(cluster.caData ?? ''),
      user: user?.name ?? '',
      certificateFile: pem,
      keyFile: pem,
    }),
  ]);
  const before = { content: conf.content, mode: conf.mode, owner: conf.owner };
  const { mode, owner } = conf;
  const reason = 'the kubelet rotates the certificate in a separate file';
  return {
    changes: [
      { kind: 'write-file', path: KUBELET_CONF, content, mode, owner, action: 'update', before, reason },
      ...(init === 'systemd' ? [{ kind: 'restart-unit', unit: 'kubelet', reason: `${KUBELET_CONF} changes` } as const] : []),
    ],
  };
}
