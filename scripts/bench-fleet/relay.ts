import { connect, createServer, type Socket } from 'node:net';

/** The traffic of one connection through the relay. */
export interface Traffic {
  /** The number of times the host answered received data; TCP's own handshake is the first. */
  readonly roundTrips: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
}

/** A relay between clients and hosts: delays each direction by half a round trip, and counts. */
export interface Relay {
  readonly port: number;
  /** Connections that ended since the last call. */
  take(): readonly Traffic[];
  stop(): Promise<void>;
}

/**
 * @param roundTripMs simulated round trip time; the TCP handshake itself is not delayed, the kernel performs
 * it
 */
export async function startRelay(addresses: readonly string[], port: number, to: number, roundTripMs: number): Promise<Relay> {
  const traffic: Traffic[] = [];
  const sockets = new Set<Socket>();
  const servers = await Promise.all(
    addresses.map(async (address) => {
      const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
        const host = connect({ host: address, port: to, noDelay: true, allowHalfOpen: true });
        for (const socket of [client, host]) sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
        // TCP's handshake is the first.
        const count = { roundTrips: 1, bytesUp: 0, bytesDown: 0 };
        let hasHeard = false;
        pass(client, host, roundTripMs / 2, {
          onSent: (bytes) => {
            count.bytesUp += bytes;
          },
          onArrived: () => {
            hasHeard = true;
          },
        });
        pass(host, client, roundTripMs / 2, {
          onSent: (bytes) => {
            count.bytesDown += bytes;
            if (hasHeard) count.roundTrips++;
            hasHeard = false;
          },
        });
        client.on('close', () => traffic.push(count));
      });
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, address, resolve));
      return server;
    }),
  );
  return {
    port,
    take: () => traffic.splice(0),
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

interface Listeners {
  /** The sender has sent a piece. */
  readonly onSent: (bytes: number) => void;
  /** The receiver has received a piece. */
  readonly onArrived?: () => void;
}

/** Delivers in order after a delay. */
function pass(from: Socket, to: Socket, delayMs: number, { onSent, onArrived }: Listeners): void {
  const later = (action: () => void): void => void (delayMs === 0 ? action() : setTimeout(action, delayMs));
  from.on('data', (chunk) => {
    onSent(chunk.length);
    later(() => {
      onArrived?.();
      to.write(chunk);
    });
  });
  from.on('end', () => later(() => to.end()));
  from.on('close', () => later(() => to.destroy()));
}
