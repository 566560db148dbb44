import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * The proxy's behaviour: its credentials and its target; a number is the reply of RFC 1928 with which it
 * rejects requests.
 */
export interface SocksRules {
  readonly login?: string;
  readonly to: number | { readonly port: number };
  /** The requested targets. */
  readonly asked: string[];
}

/** A SOCKS version 5 proxy by RFC 1928 and RFC 1929, for names and IPv4 addresses. Not listening yet. */
export function socksProxy({ login, to, asked }: SocksRules): Server {
  return createServer(async (client) => {
    client.on('error', () => undefined);
    const [, methods = 0] = await take(client, 2);
    await take(client, methods);
    client.write(Buffer.from([5, login === undefined ? 0 : 2]));
    if (login !== undefined) {
      const [, nameLength = 0] = await take(client, 2);
      const name = await take(client, nameLength);
      const password = await take(client, (await take(client, 1))[0] ?? 0);
      const isRight = `${name}:${password}` === login;
      client.write(Buffer.from([1, isRight ? 0 : 1]));
      if (!isRight) return;
    }
    const [, , , type] = await take(client, 4);
    const host = type === 1 ? (await take(client, 4)).join('.') : String(await take(client, (await take(client, 1))[0] ?? 0));
    asked.push(`${host}:${(await take(client, 2)).readUInt16BE()}`);
    if (typeof to === 'number') return void client.end(Buffer.from([5, to, 0, 1, 0, 0, 0, 0, 0, 0]));
    const target = connect(to.port, '127.0.0.1', () => {
      client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
      target.pipe(client).pipe(target);
    });
    target.on('error', () => client.destroy());
    client.on('close', () => target.destroy());
  });
}

async function take(socket: Socket, bytes: number): Promise<Buffer> {
  if (bytes === 0) return Buffer.alloc(0);
  for (;;) {
    const taken = socket.read(bytes) as Buffer | null;
    if (taken !== null) return taken;
    await new Promise((resolve) => socket.once('readable', resolve));
  }
}
