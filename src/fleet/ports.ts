import type { ThisProcess } from '../base/this-process.ts';
import type { Host } from '../host/host.ts';
import type { HostTarget } from './host-target.ts';

/** Connections to hosts. */
export interface HostConnections {
  connectHost(target: HostTarget): Promise<Host>;
  /** Named in the locks of the hosts that it changes. */
  readonly self: ThisProcess;
}

/** Connections to the targets that are not this machine. */
export function connectionsTo(
  { connectHost }: Pick<HostConnections, 'connectHost'>,
  targets: readonly HostTarget[],
): readonly (() => Promise<Host>)[] {
  const others = targets.filter(({ address, member }) => address !== undefined || member !== undefined);
  return others.map((target) => () => connectHost(target));
}
