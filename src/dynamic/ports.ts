import type { LocalServers } from '../base/local-server.ts';

/** The host of an agent, apart from its kubelet. */
export interface AgentHostPort extends LocalServers {
  /**
   * Calls a function when a file of the local host was changed, replaced, created or removed, until the
   * signal is aborted.
   */
  watchFile(path: string, onChange: () => void, signal: AbortSignal): void;
  /** A random number from 0 up to 1, not for secrets. */
  random(): number;
}
