import { type ChildProcess, spawn } from 'node:child_process';
import { type AddressInfo, connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import ssh2, { type AuthContext, type Connection, type ServerChannel } from 'ssh2';
import { relayOutput } from './relay-output.ts';
import type { CommandAnswer } from './stand-in-commands.ts';

export interface SshServerOptions {
  /** PEM of the host's private key. */
  readonly hostKey: string;
  /** Public key that may log in, as in authorized_keys. */
  readonly authorizedKey: string;
  /** Environment of the commands: PATH with the stand-ins first, KUBELETADM_ROOT. */
  readonly env: Readonly<Record<string, string>>;
  readonly answer: (commandLine: string) => CommandAnswer;
  /** The loopback address for a destination of a forwarded connection; null: the connection is refused. */
  readonly loopbackOf: (address: string) => string | null;
}

export interface SshServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * An SSH server in this process, on a free loopback port: runs commands with the local `/bin/sh`. One public
 * key may log in, as root.
 */
export async function startSshServer(options: SshServerOptions): Promise<SshServer> {
  const allowed = ssh2.utils.parseKey(options.authorizedKey);
  if (allowed instanceof Error) throw allowed;
  const connections = new Set<Connection>();
  const ssh = new ssh2.Server({ hostKeys: [options.hostKey] }, (connection) => {
    connections.add(connection);
    connection.on('close', () => connections.delete(connection));
    connection.on('error', () => connections.delete(connection));
    connection.on('authentication', (context) => authenticate(context, Array.isArray(allowed) ? allowed[0] : allowed));
    connection.on('tcpip', (accept, reject, { destIP, destPort }) => forward(options.loopbackOf(destIP), destPort, { accept, reject }));
    connection.on('session', (accept) => {
      const opened = accept();
      opened.on('exec', (acceptExec, _reject, { command }) => runCommand(acceptExec(), command, options));
    });
  });
  // TCP_NODELAY as sshd sets it: without it, each command waits 0.1 s for delayed acknowledgements.
  const server = createServer({ noDelay: true }, (socket) => ssh.injectSocket(socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve());
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        for (const connection of connections) connection.end();
        server.close(() => resolve());
      }),
  };
}

function authenticate(context: AuthContext, allowed: ssh2.ParsedKey): void {
  if (context.method !== 'publickey' || context.username !== 'root') {
    context.reject(['publickey']);
    return;
  }
  const same = context.key.algo === allowed.type && context.key.data.equals(allowed.getPublicSSH());
  const { signature, blob } = context;
  if (!same || (signature !== undefined && blob !== undefined && allowed.verify(blob, signature, context.hashAlgo) !== true))
    context.reject(['publickey']);
  else context.accept();
}

function forward(
  host: string | null,
  port: number,
  { accept, reject }: { readonly accept: () => ServerChannel; readonly reject: () => void },
): void {
  if (host === null) {
    reject();
    return;
  }
  const socket = connect({ host, port });
  socket.once('error', reject).once('connect', () => {
    socket.off('error', reject);
    const channel = accept();
    socket.on('error', () => channel.close()).on('close', () => channel.close());
    channel.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    channel.pipe(socket).pipe(channel);
  });
}

function runCommand(channel: ServerChannel, command: string, { env, answer }: SshServerOptions): void {
  const child = spawn('/bin/sh', ['-c', command], { env: { ...env }, stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'] });
  serveQuestions(child, answer);
  channel.pipe(child.stdin as Writable).on('error', () => {});
  const outputSent = relayOutput(child, channel);
  channel.on('close', () => child.kill('SIGHUP'));
  child.on('error', () => channel.close());
  child.on('close', async (code, signal) => {
    await outputSent();
    if (code === null) channel.exit(signal?.replace(/^SIG/, '') ?? 'TERM');
    else channel.exit(code);
    channel.end();
  });
}

/**
 * File descriptors 3 and 4 of a command: one query per line, answered with `exit-code line-count` and the
 * lines.
 */
function serveQuestions(child: ChildProcess, answer: SshServerOptions['answer']): void {
  const queries = child.stdio[3] as Readable;
  const answers = child.stdio[4] as Writable;
  answers.on('error', () => {});
  createInterface({ input: queries }).on('line', (line) => {
    const { exitCode, lines } = answer(line);
    answers.write(`${[`${exitCode} ${lines.length}`, ...lines].join('\n')}\n`);
  });
}
