import { AppError, withHostInErrors } from '../../base/errors.ts';
import { observe } from '../../host/observe.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { formatMinor, type Minor, OLDEST_MINOR, parseMinor } from '../../kubelet/catalogue.ts';
import { type HostFacts, hostFacts } from '../../kubelet/facts/host-facts.ts';
import { nodeIpOn } from '../../kubelet/node-ip.ts';
import { applyNodeDefaults, type DefaultedNodeRegistration, withScheme } from '../config/defaults.ts';
import type { NodeOptions } from './node-options.ts';

/** Facts of a host, and the registration derived from them. */
export interface ObservedNode {
  readonly facts: HostFacts;
  readonly registration: DefaultedNodeRegistration;
  readonly criSocketSource: string;
  /** Of the installed kubelet; null: no kubelet is installed. */
  readonly kubeletMinor: Minor | null;
}

/**
 * Observes a host and decides the name and the container runtime of its node.
 * @throws AppError CONFIG_SEVERAL_RUNTIMES, CONFIG_INVALID_NAME, NODE_IP_NOT_FOUND, KUBELET_VERSION_UNSUPPORTED; the
 * errors of `host.query`
 */
export async function observeNode(context: PhaseContext, options: NodeOptions): Promise<ObservedNode> {
  const { criSocket } = options.nodeRegistration;
  const declared = criSocket === undefined ? null : withScheme(criSocket);
  const facts = await observe(context.host, hostFacts(declared), context.signal);
  reportFacts(context, facts);
  const found = { hostname: facts.os.hostname ?? '', criSockets: facts.sockets };
  const registration = withHostInErrors(context.host.name, () =>
    withNodeIp(applyNodeDefaults(options.nodeRegistration, found), facts.addresses),
  );
  const criSocketSource =
    declared !== null
      ? 'nodeRegistration.criSocket'
      : facts.sockets.length > 0
        ? 'detected on the host'
        : "kubeadm's default, no runtime found";
  return { facts, registration, criSocketSource, kubeletMinor: kubeletMinorOf(facts, context.host.name) };
}

/** Replaces each declared subnet by the host's address in it. */
function withNodeIp(registration: DefaultedNodeRegistration, addresses: readonly string[] | null): DefaultedNodeRegistration {
  const kubeletExtraArgs = registration.kubeletExtraArgs.map((arg) =>
    arg.name === 'node-ip' ? { ...arg, value: nodeIpOn(arg.value, addresses) } : arg,
  );
  return { ...registration, kubeletExtraArgs };
}

function reportFacts({ host, reporter }: PhaseContext, facts: HostFacts): void {
  const kubelet =
    facts.kubelet === null ? 'no kubelet' : 'version' in facts.kubelet ? `kubelet ${facts.kubelet.version}` : facts.kubelet.error;
  const runtimes = facts.sockets.length === 0 ? 'no container runtime' : facts.sockets.join(', ');
  const message = `${facts.os.prettyName ?? 'unknown system'}, ${kubelet}, ${runtimes}${facts.resolvedActive ? ', systemd-resolved' : ''}`;
  reporter.report({ level: 'info', code: 'HOST_FACTS', host: host.name, message, verbosity: 1 });
}

function kubeletMinorOf(facts: HostFacts, host: string): Minor | null {
  if (facts.kubelet === null || !('version' in facts.kubelet)) return null;
  const minor = parseMinor(facts.kubelet.version);
  if (minor !== null && minor >= OLDEST_MINOR) return minor;
  const message = `kubelet ${facts.kubelet.version} is not supported: the oldest supported version is ${formatMinor(OLDEST_MINOR)}`;
  throw new AppError({ host, code: 'KUBELET_VERSION_UNSUPPORTED', message, hint: 'Install a newer kubelet' }, { exitCode: 3 });
}
