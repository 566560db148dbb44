/** A request, as far as responses depend on it. */
export interface LocalRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The Host header; empty: none. */
  readonly host: string;
  /** Of a POST: its body, and headers that are empty if the request has none. */
  readonly post?: { readonly origin: string; readonly contentType: string; readonly body: string };
}

/** The response to a request. */
export interface LocalResponse {
  readonly status: number;
  /** The content type. */
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Keeps the response open for more text than `body`. */
  readonly stream?: (stream: LocalStream) => void;
}

/** A response that is sent in pieces. */
export interface LocalStream {
  send(text: string): void;
  /** Characters that the reader has not received yet. */
  pending(): number;
  /** Called once, also if the reader leaves. */
  onClose(listener: () => void): void;
  /** Sends the last text; resolves when it was sent, or the reader has left. */
  end(text: string): Promise<void>;
}

/** A server on the local host. */
export interface LocalServer {
  readonly port: number;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** An address of the local host. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Serves GET, HEAD and small POST requests on an address of the local host. */
export interface LocalServers {
  /**
   * @param port 0: a free one
   * @param answer null: 404
   * @throws the error of `listen`
   */
  serveLocal(
    host: string,
    port: number,
    answer: (request: LocalRequest) => LocalResponse | null | Promise<LocalResponse | null>,
  ): Promise<LocalServer>;
}
