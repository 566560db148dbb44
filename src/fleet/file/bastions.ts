import { isAppError } from '../../base/errors.ts';
import { formatIp, parseIp } from '../../base/text/ip.ts';
import { parseSshDestination } from '../../ssh/destination.ts';
import { bastionCycle, invalidFleetValue } from './fleet-problems.ts';
import type { BastionText, HostSettings } from './host-settings.ts';
import type { ResolvedBastion } from './model.ts';
import type { ProblemCollector } from './problem-collector.ts';

export interface Route {
  readonly jumps: readonly ResolvedBastion[];
  /** The file requires a direct connection: ssh_config is not consulted. */
  readonly direct: boolean;
}

const DIRECT: Route = { jumps: [], direct: true };
const UNSAID: Route = { jumps: [], direct: false };

/**
 * Resolves the bastions of the hosts: hosts of the fleet with their own settings and routes, otherwise SSH
 * destinations.
 * @param hosts all hosts including bastions, by name
 */
export function bastionRoutes(
  hosts: ReadonlyMap<string, { readonly settings: HostSettings }>,
  findings: ProblemCollector,
): (name: string) => Route {
  const known = new Map<string, Route>();
  const routeOf = (name: string, seen: readonly string[]): Route => {
    const found = known.get(name);
    if (found) return found;
    const route = jumpsOf(name, seen);
    known.set(name, route);
    return route;
  };
  const jumpsOf = (name: string, seen: readonly string[]): Route => {
    const bastion = hosts.get(name)?.settings.bastion ?? null;
    if (bastion === null) return UNSAID;
    if (bastion.text.trim().toLowerCase() === 'none') return DIRECT;
    const hops = bastion.text.split(',').map((hop) => hop.trim());
    // A setting for all hosts "through b1" does not apply to b1 itself.
    if (bastion.inherited && hops.includes(name)) return DIRECT;
    const through = [...seen, name];
    const [first = '', ...others] = hops;
    const jumps = [first, ...others].flatMap((hop, i) => hopsTo(hop, { through, bastion, follow: i === 0 }));
    return { jumps, direct: false };
  };
  const hopsTo = (
    hop: string,
    { through, bastion, follow }: { readonly through: readonly string[]; readonly bastion: BastionText; readonly follow: boolean },
  ): readonly ResolvedBastion[] => {
    const host = hosts.get(hop);
    if (host === undefined) return destination(hop, bastion, findings);
    if (through.includes(hop)) {
      findings.addShared('bastion', bastion.place, () => bastionCycle([...through.slice(through.indexOf(hop)), hop]));
      return [];
    }
    const { address, user, port, identityFiles, hostKeys } = host.settings.ssh;
    const own: ResolvedBastion = {
      name: hop,
      address,
      identityFiles,
      hostKeys,
      ...(user === undefined ? {} : { user }),
      ...(port === undefined ? {} : { port }),
    };
    return [...(follow ? routeOf(hop, through).jumps : []), own];
  };
  return (name) => routeOf(name, []);
}

function destination(text: string, { place }: BastionText, findings: ProblemCollector): readonly ResolvedBastion[] {
  try {
    const { host, user, port } = parseSshDestination(text);
    const rest = { ...(user === undefined ? {} : { user }), ...(port === undefined ? {} : { port }) };
    return [{ name: text, address: host, identityFiles: [], hostKeys: [], ...rest }];
  } catch (error) {
    if (!isAppError(error)) throw error;
    const hint = 'Write the name of a host in this file, [user@]address[:port], or none';
    const message = text === '' ? 'an item of the list is empty' : `${JSON.stringify(text.slice(0, 80))} is not a valid bastion`;
    findings.addShared(`bastion ${text}`, place, () => invalidFleetValue(message, hint));
    return [];
  }
}

/** The destination of a connection in normalized form. */
export function destinationKey({ address, port = 22 }: { readonly address: string; readonly port?: number }): string {
  const ip = parseIp(address);
  const host = ip === null ? address.toLowerCase() : formatIp(ip);
  return port === 22 ? host : host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
