/**
 * Opens a TCP connection from the host (127.0.0.1 is the host), over the connection to it. Rejects with Node's error for a failed
 * connection; AppError HOST_FORWARD_REFUSED when the host forbids forwarding, else as `run`.
 */
export type Dial = (address: { readonly host: string; readonly port: number }, signal?: AbortSignal) => Promise<NodeJS.ReadWriteStream>;
