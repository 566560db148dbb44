import { applyResetDefaults } from '../core/config/defaults.ts';
import type { ResetConfiguration } from '../core/config/model.ts';
import { entryOf, parseSource } from '../core/config/source.ts';
import { aboutHost } from '../core/errors.ts';
import { criSockets } from '../core/facts/cri-socket.ts';
import { combineFacts, type Fact } from '../core/facts/fact.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import { operatingSystem } from '../core/facts/operating-system.ts';
import { type Finding, judgeFindings } from '../core/preflight/check.ts';
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

const INSTANCE_CONFIG = '/var/lib/kubelet/instance-config.yaml';
const ETCD_MANIFEST = '/etc/kubernetes/manifests/etcd.yaml';
const FACTS = combineFacts({ os: operatingSystem, sockets: criSockets(null), files: fileFacts([INSTANCE_CONFIG, ETCD_MANIFEST]) });

type ResetFacts = typeof FACTS extends Fact<infer T> ? T : never;

async function prepareReset(context: PhaseContext, options: ResetOptions): Promise<Prepared<CleanupNodeInput>> {
  const facts = await observe(context.host, FACTS, context.signal);
  const used = endpointOf(facts.files.get(INSTANCE_CONFIG)?.content ?? '');
  const { certificatesDir, criSocket, cleanupTmpDir, unmountFlags, ignorePreflightErrors } = aboutHost(context.host.name, () =>
    applyResetDefaults(options.reset, { criSockets: used === null ? facts.sockets : [used] }),
  );
  const { errors, warnings } = judgeFindings(
    options.skipPreflight ? [] : resetFindings(facts, options),
    [...options.ignorePreflightErrors, ...(ignorePreflightErrors ?? [])],
    context.host.name,
  );
  return {
    input: { certificatesDir, criSocket, cleanupTmpDir: cleanupTmpDir === true, unmountFlags: unmountFlags ?? [] },
    warnings: warnings.map(({ id, message }) => ({ code: id, message })),
    refusals: errors,
  };
}

function resetFindings({ os, files }: ResetFacts, { dryRun }: ResetOptions): readonly Finding[] {
  const findings: Finding[] = [];
  if (os.uid !== null && os.uid !== 0) {
    const mend = 'Run as root, or let the user use sudo';
    findings.push({ id: 'IsPrivilegedUser', severity: dryRun ? 'warning' : 'error', message: 'the user on the host is not root', mend });
  }
  // kubeadm's phase remove-etcd-member: a member that is gone for good still counts for the quorum.
  if ((files.get(ETCD_MANIFEST) ?? null) !== null) {
    const message = 'the host runs a member of etcd, and this program does not take it out of the etcd cluster';
    const mend = 'Use kubeadm reset there, or remove the member first (etcdctl member remove)';
    findings.push({ id: 'EtcdMember', severity: 'error', message, mend });
  }
  return findings;
}

/** The runtime the kubelet was set up with. */
function endpointOf(instanceConfig: string): string | null {
  const root = parseSource(instanceConfig, INSTANCE_CONFIG).documents[0]?.root ?? null;
  const value = entryOf(root, 'containerRuntimeEndpoint')?.value;
  return value?.kind === 'scalar' && typeof value.scalar.value === 'string' && value.scalar.value !== '' ? value.scalar.value : null;
}

/** What reset leaves on a host, as kubeadm does: not ours to remove, or not ours alone. */
export const RESET_LEAVES: readonly string[] = [
  'the Node object and its certificate signing requests (kubectl delete node NAME)',
  '/etc/cni/net.d and the rules of iptables, nftables and IPVS',
  '~/.kube/config',
  '/etc/default/kubelet or /etc/sysconfig/kubelet, kubelet.service and its drop-ins; the unit stays enabled',
];
