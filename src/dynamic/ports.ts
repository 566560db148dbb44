/** The response for a path. */
export interface LocalResponse {
  readonly status: number;
  /** The content type. */
  readonly type: string;
  readonly body: string;
}

/** A server on the local host. */
export interface LocalServer {
  readonly port: number;
  close(): Promise<void>;
}

/** The host of an agent, apart from its kubelet. */
export interface AgentHostPort {
  /**
   * Calls a function when a file of the local host was changed, replaced, created or removed, until the
   * signal is aborted.
   */
  watchFile(path: string, onChange: () => void, signal: AbortSignal): void;
  /** Serves GETs on an address of the local host; null: 404. */
  serveLocal(host: string, port: number, answer: (path: string) => LocalResponse | null): Promise<LocalServer>;
  /** A random number from 0 up to 1, not for secrets. */
  random(): number;
}
