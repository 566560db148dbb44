import type { JsonObject } from '../../base/json.ts';
import { type IpAddress, isUnspecified, parseIp } from '../../base/text/ip.ts';
import { commandOf, flagValue } from './component-endpoints.ts';
import type { StaticPodName } from './paths.ts';

/** The flag with the addresses of each listener. Without the flag, a component listens on all addresses. */
const FLAGS: readonly { readonly name: StaticPodName; readonly port: number | null; readonly flag: string }[] = [
  { name: 'kube-apiserver', port: null, flag: 'bind-address' },
  { name: 'kube-controller-manager', port: 10257, flag: 'bind-address' },
  { name: 'kube-scheduler', port: 10259, flag: 'bind-address' },
  { name: 'etcd', port: 2379, flag: 'listen-client-urls' },
  { name: 'etcd', port: 2380, flag: 'listen-peer-urls' },
];

/**
 * The addresses on which the static Pods of a control plane listen, according to their flags, which may be patched.
 * @param pods the Pods of the node, by name
 * @param bindPort port of the API server
 * @returns addresses by port; a port is missing if its component listens on all addresses, or if they are not known
 */
export function listenAddresses(pods: ReadonlyMap<StaticPodName, JsonObject>, bindPort: number): ReadonlyMap<number, readonly IpAddress[]> {
  return new Map(
    FLAGS.flatMap(({ name, port, flag }): readonly (readonly [number, readonly IpAddress[]])[] => {
      const value = flagValue(commandOf(pods.get(name) ?? {}, name), flag);
      const addresses = (value?.split(',') ?? []).map((part) => parseIp(hostOf(part.trim())));
      const known = addresses.filter((address) => address !== null);
      if (known.length === 0 || known.length < addresses.length || known.some(isUnspecified)) return [];
      return [[port ?? bindPort, known]];
    }),
  );
}

/** The host of a URL, or the text itself. */
function hostOf(text: string): string {
  return /^[a-z]+:\/\/(?:\[([^\]]*)\]|([^:/]*))/.exec(text)?.slice(1).find(Boolean) ?? text;
}

/** Reports whether a listening socket prevents a component from listening on one of its addresses. */
export function isTaken(listening: readonly IpAddress[], wanted: readonly IpAddress[] | undefined): boolean {
  if (wanted === undefined) return listening.length > 0;
  return listening.some((socket) =>
    wanted.some(({ family, value }) =>
      isUnspecified(socket) ? socket.family === 6 || family === 4 : socket.family === family && socket.value === value,
    ),
  );
}
