import { AppError, withHostInErrors } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import { sourceToJson } from '../../../codec/source.ts';
import { observe } from '../../../host/access/observe.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { formatMinor, type Minor, OLDEST_MINOR, parseMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { type HostFacts, hostFacts } from '../../../kubelet/facts/host-facts.ts';
import { nodeIpOn } from '../../../kubelet/flags/node-ip.ts';
import { applyNodeDefaults, type DefaultedNodeRegistration, withScheme } from '../../config/defaults.ts';
import type { NodeSettings } from '../../node-settings/node-settings.ts';
import { type HostFlags, keptSocket, NO_HOST_FLAGS, observeHostFlags, withHostFlags } from './host-flags.ts';
import type { NodeOptions } from './node-options.ts';

/** Facts of a host, and the registration derived from them. */
export interface ObservedNode {
  readonly facts: HostFacts;
  readonly registration: DefaultedNodeRegistration;
  readonly criSocketSource: string;
  /** Flags of the host's own unit, which `registration` contains. */
  readonly hostFlags: HostFlags;
  /** Of the installed kubelet; null: no kubelet is installed. */
  readonly kubeletMinor: Minor | null;
}

/**
 * Observes a host and decides the name, the container runtime and the kept flags of its node.
 * @param writesUnit false: the run leaves the unit of the kubelet as it is, with its flags
 * @throws AppError CONFIG_SEVERAL_RUNTIMES, CONFIG_INVALID_NAME, NODE_IP_NOT_FOUND, KUBELET_VERSION_UNSUPPORTED; the
 * errors of `host.query`
 */
export async function observeNode(context: PhaseContext, options: NodeOptions, { writesUnit = true } = {}): Promise<ObservedNode> {
  const { criSocket } = options.nodeRegistration;
  const declared = criSocket === undefined ? null : withScheme(criSocket);
  const usual = await observe(context.host, hostFacts(declared), context.signal);
  reportFacts(context, usual);
  const kubeletMinor = kubeletMinorOf(usual, context.host.name);
  const hostFlags = writesUnit ? await observeHostFlags(context, options, { facts: usual, kubeletMinor }) : NO_HOST_FLAGS;
  const kept = keptSocket(hostFlags.kept);
  const facts = kept === null ? usual : await observe(context.host, hostFacts(withScheme(kept.value)), context.signal);
  const found = { hostname: facts.os.hostname ?? '', criSockets: facts.sockets };
  const registration = withHostInErrors(context.host.name, () =>
    withNodeIp(applyNodeDefaults(withHostFlags(options.nodeRegistration, hostFlags), found), facts.addresses),
  );
  const criSocketSource =
    declared !== null
      ? 'nodeRegistration.criSocket'
      : kept !== null
        ? kept.source
        : facts.sockets.length > 0
          ? 'detected on the host'
          : "kubeadm's default, no runtime found";
  return { facts, registration, criSocketSource, hostFlags, kubeletMinor };
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

/** The settings of a node that are saved on the host for upgrades. */
export function nodeSettingsOf(
  { registration, hostFlags }: Pick<ObservedNode, 'registration' | 'hostFlags'>,
  options: NodeOptions,
): NodeSettings {
  const isSplit = options.configDir === true;
  const { name, criSocket, taints } = registration;
  const { kept } = hostFlags;
  const kubeletExtraArgs = registration.kubeletExtraArgs.filter((arg) => !kept.some((flag) => flag.name === arg.name));
  const keptFlags = kept.length === 0 ? {} : { keptFlags: kept.map(({ name, value }) => ({ name, value })) };
  return {
    nodeRegistration: { name, criSocket, ...(taints === undefined ? {} : { taints }), kubeletExtraArgs, ...keptFlags },
    overlays: options.overlays.flatMap(({ file, root, layer }) =>
      root === null ? [] : [{ source: fileOf(file), content: sourceToJson(root) as JsonObject, ...(isSplit && { layer }) }],
    ),
    declared: options.declared.map((setting) => ({ ...setting, source: fileOf(setting.source) })),
    settings: options.settings,
    patches: options.patches,
    ...(isSplit ? { configDir: true } : {}),
  };
}

/** Drops folder and line, so that moving a declaration does not change the saved settings. */
function fileOf(source: string): string {
  return source.replace(/:[0-9]+:[0-9]+$/, '').replace(/^.*\//, '');
}
