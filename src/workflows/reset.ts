import { applyResetDefaults } from '../core/config/defaults.ts';
import type { ResetConfiguration } from '../core/config/model.ts';
import { aboutHost } from '../core/errors.ts';
import { criSockets } from '../core/facts/cri-socket.ts';
import { combineFacts } from '../core/facts/fact.ts';
import { operatingSystem } from '../core/facts/operating-system.ts';
import { judgeFindings } from '../core/preflight/check.ts';
import { observe } from '../engine/observe.ts';
import type { PhaseContext } from '../engine/phase.ts';
import type { Prepared, Workflow } from '../engine/run-workflow.ts';
import { type CleanupNodeInput, cleanupNode } from '../phases/cleanup-node.ts';

export interface ResetOptions {
  readonly reset: ResetConfiguration;
  readonly ignorePreflightErrors: readonly string[];
  readonly skipPreflight: boolean;
  readonly dryRun: boolean;
}

/** Takes off a host what init or join put there. */
export const resetWorkflow: Workflow<ResetOptions, CleanupNodeInput> = { name: 'reset', phases: [cleanupNode], prepare: prepareReset };

async function prepareReset(context: PhaseContext, options: ResetOptions): Promise<Prepared<CleanupNodeInput>> {
  const { os, sockets } = await observe(context.host, combineFacts({ os: operatingSystem, sockets: criSockets(null) }), context.signal);
  const { certificatesDir, criSocket, cleanupTmpDir, unmountFlags, ignorePreflightErrors } = aboutHost(context.host.name, () =>
    applyResetDefaults(options.reset, { criSockets: sockets }),
  );
  const notRoot = os.uid !== null && os.uid !== 0 && !options.skipPreflight;
  const finding = {
    id: 'IsPrivilegedUser',
    severity: options.dryRun ? 'warning' : 'error',
    message: 'the user on the host is not root',
    mend: 'Run as root, or let the user use sudo',
  } as const;
  const { errors, warnings } = judgeFindings(
    notRoot ? [finding] : [],
    [...options.ignorePreflightErrors, ...(ignorePreflightErrors ?? [])],
    context.host.name,
  );
  return {
    input: { certificatesDir, criSocket, cleanupTmpDir: cleanupTmpDir === true, unmountFlags: unmountFlags ?? [] },
    warnings: warnings.map(({ id, message }) => ({ code: id, message })),
    refusals: errors,
  };
}

/** What reset leaves on a host, as kubeadm does: not ours to remove, or not ours alone. */
export const RESET_LEAVES: readonly string[] = [
  'the Node object and its certificate signing requests (kubectl delete node NAME)',
  '/etc/cni/net.d and the rules of iptables, nftables and IPVS',
  '~/.kube/config',
  '/etc/default/kubelet or /etc/sysconfig/kubelet, kubelet.service and its drop-ins; the unit stays enabled',
];
