/** Destination of a connection from the host's point of view: 127.0.0.1 is the host. */
export interface DialAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Opens a TCP connection from the host, over the connection to it. Rejects with Node's error for a failed
 * connection; AppError HOST_FORWARD_REFUSED when the host forbids forwarding, else as `run`.
 */
export type Dial = (address: DialAddress, signal?: AbortSignal) => Promise<NodeJS.ReadWriteStream>;
