import { homedir, hostname } from 'node:os';
import { resolve } from 'node:path';
import { systemClock } from './base/adapters/clock-system.ts';
import { visible } from './base/text/printable.ts';
import { revealText } from './base/text/secret.ts';
import { listFiles, localInput, makeTemporaryDirectory, removeTemporaryDirectory, writeLocalFile } from './cli/adapters/input-local.ts';
import { jsonReporter } from './cli/adapters/reporter-json.ts';
import { textReporter } from './cli/adapters/reporter-text.ts';
import { withStatusLine } from './cli/adapters/status-line.ts';
import { textOutput } from './cli/adapters/text-output.ts';
import { thisProcess } from './cli/adapters/this-process.ts';
import type { RawOutput, Services } from './cli/services.ts';
import type { HostTarget } from './fleet/host-target.ts';
import type { Host } from './host/host.ts';
import type { Transport } from './host/transport.ts';
import { loadTemplates } from './template-files.ts';
import { type SshAccess, sshAccess } from './wiring-ssh.ts';

/** The parts of the process that bin.ts passes. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly signal: AbortSignal;
  readonly onForcedExit?: (listener: () => void) => () => void;
  /** The running program; absent when it is not a single file. */
  readonly program?: { readonly script: string; readonly executable: string };
}

/** Wires options to adapters. Heavy modules (SSH, the Kubernetes client) are loaded on first use. */
export function createServices(environment: Environment): Services {
  const { env, stdin, stdout, stderr, signal, onForcedExit, program } = environment;
  const plain: RawOutput = { stdout: (text) => void stdout.write(text), stderr: (text) => void stderr.write(text) };
  const raw = stderr.isTTY === true && env.TERM !== 'dumb' ? withStatusLine(plain, () => stderr.columns ?? 80) : plain;
  const colour = stdout.isTTY === true && stderr.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  const output = textOutput(raw, { colour, isTerminal: stdout.isTTY === true });
  const ssh = sshAccess(env, output.stderr);
  return {
    env,
    output,
    signal,
    onForcedExit,
    input: localInput(stdin),
    clock: systemClock,
    homeDirectory: homedir(),
    hostname: hostname(),
    self: thisProcess(),
    newId: async () => (await import('node:crypto')).randomBytes(8).toString('hex'),
    readProgram: async (path) => (await import('./host/adapters/large-file.ts')).readProgram(path, program),
    writeLocalFile,
    runLocal,
    makeTemporaryDirectory,
    removeTemporaryDirectory,
    listFiles,
    newToken: async () => {
      const [{ generateToken }, { randomInt }] = await Promise.all([import('./kubeadm/token/generate-token.ts'), import('node:crypto')]);
      return generateToken(randomInt);
    },
    certificateIssuer: async () => (await import('./x509/adapters/certificate-issuer.ts')).certificateIssuer,
    random: Math.random,
    watchFile: (path, onChange, signal) =>
      void import('./cli/adapters/watch-file.ts').then(({ watchFile }) => watchFile(path, onChange, signal)),
    serveLocal: async (host, port, answer) => (await import('./cli/adapters/http-local.ts')).serveLocal(host, port, answer),
    confirm: async (question) => (await import('./cli/adapters/prompt-terminal.ts')).confirmOnTerminal(visible(question), stdin, stderr),
    templates: loadTemplates,
    reporter: ({ format, verbosity }) =>
      format === 'json' ? jsonReporter(output, systemClock, verbosity) : textReporter(output, verbosity),
    connectHost: (target) => connectHost(target, ssh),
    runJournals: async () => (await import('./fleet/adapters/run-journals.ts')).localRunJournals(env),
    openHostKeys: (options) => ssh.hostKeys(options),
    readSshConfig: async (configFile) =>
      (await (await import('./ssh/adapters/ssh-config.ts')).loadSshConfig({ variables: env, configFile: resolve(configFile) })).files,
    connectCluster: async ({ kubeconfig: { text, file }, from, ...named }) => {
      const { kubeCluster } = await import('./kube/adapters/cluster-kube.ts');
      const target = { kubeconfig: { text: revealText(text), file }, ...named };
      return kubeCluster(from?.dial === undefined ? { ...target, env } : { ...target, dial: from.dial });
    },
    connectEtcd: async ({ from, ...target }) => {
      const { etcdMembers } = await import('./kubeadm/adapters/etcd-members.ts');
      return etcdMembers({ ...target, clock: systemClock, ...(from.dial === undefined ? {} : { dial: from.dial }) });
    },
    web: { get: async (request) => (await import('./kube/adapters/web.ts')).nodeWeb(env).get(request) },
    startLab: async (options) => (await import('./lab/lab.ts')).startLab(options),
  };
}

async function connectHost(target: HostTarget, ssh: SshAccess): Promise<Host> {
  const [{ hostOver }, { randomUUID }] = await Promise.all([import('./host/host-over-transport.ts'), import('node:crypto')]);
  const route = target.member ?? target.address;
  const rootDir = target.rootDir === undefined ? {} : { rootDir: route === undefined ? resolve(target.rootDir) : target.rootDir };
  const limitMs = target.commandTimeoutMs ?? target.member?.ssh.commandTimeoutMs;
  const limit = limitMs === undefined ? {} : { commandTimeoutMs: limitMs };
  const transport = route === undefined ? await localHost(target) : await ssh.transport(route, target.ssh ?? {}, limit);
  return hostOver(transport, { ...rootDir, ...limit, nonce: randomUUID });
}

async function localHost(target: HostTarget): Promise<Transport> {
  const { localTransport } = await import('./host/adapters/transport-local.ts');
  return localTransport(target.rootDir === undefined ? {} : { name: target.rootDir });
}

async function runLocal(argv: readonly string[]): Promise<string> {
  const [{ localTransport }, { localCommandFailed }] = await Promise.all([
    import('./host/adapters/transport-local.ts'),
    import('./host/host-problems.ts'),
  ]);
  const transport = localTransport({ name: 'local host' });
  const { exitCode, stdout, stderr } = await transport.run(argv, { timeoutMs: 120_000 });
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
  if (exitCode !== 0) throw localCommandFailed(argv, { exitCode, stderr: text(stderr) });
  return text(stdout);
}
