// node tcp-balancer.mjs LISTEN TARGET...: a load balancer. Each connection goes to the next target that accepts it.
// Prints "listening" once it accepts connections; ends with the standard input.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const [listen = '', ...targets] = process.argv.slice(2);
let turn = 0;

const split = (address) => {
  const [host, port] = address.split(':');
  return { host, port: Number(port) };
};
/** A connection to the target; null: it accepts none within a second. */
const dial = async (target) => {
  const socket = connect({ ...split(target), timeout: 1_000 });
  try {
    const signal = AbortSignal.timeout(1_000);
    await once(socket, 'connect', { signal });
    socket.setTimeout(0);
    return socket;
  } catch {
    socket.destroy();
    return null;
  }
};

const server = createServer(async (client) => {
  client.on('error', () => client.destroy());
  client.pause();
  const first = turn++;
  for (let i = 0; i < targets.length; i++) {
    const socket = await dial(targets[(first + i) % targets.length]);
    if (socket === null) continue;
    socket.on('error', () => client.destroy());
    socket.on('close', () => client.destroy());
    client.on('close', () => socket.destroy());
    socket.pipe(client);
    client.pipe(socket);
    return;
  }
  client.destroy();
});
server.listen(split(listen), () => process.stdout.write('listening\n'));
process.stdin.on('end', () => process.exit());
process.stdin.resume();
