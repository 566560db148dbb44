import type { Clock } from '../../src/base/clock.ts';
import type { Authenticator } from './authenticate.ts';
import type { NodeProxy } from './node-proxy.ts';
import type { Registry } from './registry.ts';
import type { Store } from './store.ts';
import type { WatchStreams } from './watch-streams.ts';

/** The dependencies of the request handlers. */
export interface HandlerContext {
  readonly store: Store;
  readonly registry: Registry;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  /** `gitVersion`, e.g. `v1.36.2`. */
  readonly gitVersion: string;
  /** `host:port` for the discovery document. */
  readonly address: () => string;
  readonly watches: WatchStreams;
  /** By node name. */
  readonly nodeProxies: ReadonlyMap<string, NodeProxy>;
}
