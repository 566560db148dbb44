import { spawn } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import { relayOutput } from '../../lab/hosts/relay-output.ts';
import { newSshKey } from '../../lab/hosts/ssh-key.ts';
import { listenOnLoopback } from './loopback.ts';

export interface SshServerOptions {
  /** Password that every user may log in with. */
  readonly password?: string;
  readonly methods?: readonly ('password' | 'keyboard-interactive')[];
  /** Prompts in order; the first hidden one requests the password. Default: one hidden prompt. */
  readonly queries?: readonly { readonly prompt: string; readonly echo: boolean }[];
  /** Requests a new password in place of an answer. */
  readonly passwordExpired?: boolean;
  /** Program and arguments before the command. Default `/bin/sh -c`. */
  readonly loginShell?: readonly [string, ...string[]];
  /** Maximum number of simultaneous sessions on a connection. */
  readonly maxSessions?: number;
}

export interface SshServer {
  readonly port: number;
  /** Type and key, in the format of known_hosts. */
  readonly hostKey: string;
  /** The answers to keyboard-interactive prompts, in order. */
  readonly answers: readonly string[];
  dropConnections(): void;
  stop(): Promise<void>;
}

/**
 * An SSH server inside the test: accepts a password, runs commands with the local shell as the user of the
 * test.
 */
export async function startSshServer(options: SshServerOptions = {}): Promise<SshServer> {
  const { password = 'secret' } = options;
  const keys = newSshKey('test');
  const answers: string[] = [];
  const sockets = new Set<Socket>();
  const ssh = new ssh2.Server({ hostKeys: [keys.private] }, (client) => {
    client.on('authentication', (context) => authenticate(context, { ...options, password }, answers));
    client.on('error', () => undefined);
    client.on('session', serveSessions(options));
  });
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    ssh.injectSocket(socket);
  });
  const port = await listenOnLoopback(server);
  const dropConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    hostKey: keys.public.split(' ').slice(0, 2).join(' '),
    answers,
    dropConnections,
    stop: () => {
      dropConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function authenticate(context: ssh2.AuthContext, options: SshServerOptions & { readonly password: string }, answers: string[]): void {
  const methods = [...(options.methods ?? ['password'])];
  const decide = (isRight: boolean): void => (isRight ? context.accept() : context.reject(methods));
  if (context.method === 'password' && methods.includes('password')) {
    if (options.passwordExpired) context.requestChange('Change it', () => context.reject());
    else decide(context.password === options.password);
  } else if (context.method === 'keyboard-interactive' && methods.includes('keyboard-interactive')) {
    const queries = options.queries ?? [{ prompt: 'Password: ', echo: false }];
    context.prompt([...queries], (given) => {
      answers.push(...given);
      decide(given[queries.findIndex(({ echo }) => !echo)] === options.password);
    });
  } else decide(false);
}

function serveSessions({ loginShell = ['/bin/sh', '-c'], maxSessions = 100 }: SshServerOptions) {
  let open = 0;
  return (accept: () => ssh2.Session, reject: () => void): void => {
    if (open >= maxSessions) {
      reject();
      return;
    }
    open++;
    const session = accept();
    session.on('close', () => open--);
    session.on('exec', (acceptExec: () => ssh2.ServerChannel, _: unknown, { command }: ssh2.ExecInfo) => {
      serveCommand(acceptExec(), [...loginShell, command]);
    });
  };
}

function serveCommand(channel: ssh2.ServerChannel, [program = '', ...args]: readonly string[]): void {
  // A separate process group, like in every SSH server.
  const child = spawn(program, args, { detached: true });
  channel.pipe(child.stdin);
  const outputSent = relayOutput(child, channel);
  for (const stream of [child.stdin, child.stdout, child.stderr, channel]) stream.on('error', () => undefined);
  child.on('close', async (code, signal) => {
    await outputSent();
    if (signal === null) channel.exit(code ?? 0);
    else channel.exit(signal.replace(/^SIG/, ''), false, '');
    channel.end();
  });
}
