/** Where a connection goes, as the host sees it: 127.0.0.1 is the host. */
export interface DialAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Opens a TCP connection from the host, over the connection to it. Rejects with what Node says of a connection that fails (an Error with `code`, e.g.
 * ECONNREFUSED); AppError HOST_FORWARD_REFUSED when the host does not let us, else as `run`.
 */
export type Dial = (address: DialAddress, signal?: AbortSignal) => Promise<NodeJS.ReadWriteStream>;
