import type { Clock } from '../../base/clock.ts';
import type { Authenticator } from './authenticate.ts';
import type { NodeProxy } from './node-proxy.ts';
import type { Registry } from './registry.ts';
import type { Store } from './store.ts';
import type { WatchStreams } from './watch-streams.ts';

/** All that answering a request needs. */
export interface HandlerContext {
  readonly store: Store;
  readonly registry: Registry;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  /** `gitVersion`, e.g. `v1.36.2`. */
  readonly gitVersion: string;
  /** `host:port` as told in discovery. */
  readonly address: () => string;
  readonly watches: WatchStreams;
  /** By name of the node. */
  readonly nodeProxies: ReadonlyMap<string, NodeProxy>;
}
