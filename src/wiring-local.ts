import { homedir, hostname } from 'node:os';
import { resolve } from 'node:path';
import { systemClock } from './base/adapters/clock-system.ts';
import type { Reporter } from './base/reporter.ts';
import { revealText } from './base/text/secret.ts';
import { localInput, requireWritable, temporaryDirectories, writeLocalFile } from './cli/adapters/input-local.ts';
import { withLiveDisplay } from './cli/adapters/live-output.ts';
import type { LiveTerminal } from './cli/adapters/live-terminal.ts';
import { textOutput, usesColour } from './cli/adapters/text-output.ts';
import { runtimeOfProcess, thisProcess } from './cli/adapters/this-process.ts';
import { jsonReporter, textReporter } from './cli/output/reporter-text.ts';
import type { RawOutput, Services } from './cli/output/services.ts';
import { programNameOf, renamingOutput } from './cli/program-name.ts';
import type { HostTarget } from './fleet/host-target.ts';
import type { Host } from './host/access/host.ts';
import type { Transport } from './host/transport.ts';
import { createRequestRateLimiter } from './kube/request-rate-limiter.ts';
import type { Environment } from './run-process.ts';

/** Ports that only the main program has. */
export type MainProgramPorts =
  | 'bundleFiles'
  | 'readProgram'
  | 'runLocal'
  | 'newToken'
  | 'certificateIssuer'
  | 'canAsk'
  | 'confirm'
  | 'runEditor'
  | 'templates'
  | 'problemPages'
  | 'connectHost'
  | 'runJournals'
  | 'planSignatures'
  | 'signWithSsh'
  | 'openHostKeys'
  | 'readSshConfig'
  | 'connectEtcd'
  | 'serveHooks'
  | 'inRoot'
  | 'validateInThreads';

/**
 * Ports of every program: the local host and API servers.
 * @param loadTerminal loads the terminal of a live display; absent: the program has none
 */
export function localServices(environment: Environment, loadTerminal?: () => Promise<LiveTerminal>): Omit<Services, MainProgramPorts> {
  const { env, stdin, stdout, stderr, signal, onForcedExit } = environment;
  const plain: RawOutput = { stdout: (text) => void stdout.write(text), stderr: (text) => void stderr.write(text) };
  const isTerminal = stderr.isTTY === true && env.TERM !== 'dumb';
  const raw = loadTerminal === undefined || !isTerminal ? plain : withLiveDisplay(plain, stderr, loadTerminal);
  const colours = { stdout: usesColour(env, stdout), stderr: usesColour(env, stderr) };
  const limiter = createRequestRateLimiter(systemClock);
  const programName = programNameOf(env, environment.startedAs ?? []);
  const output = renamingOutput(textOutput(raw, { colours, isTerminal: stdout.isTTY === true }), programName);
  return {
    env,
    programName,
    commandPrefix: async () =>
      programName === 'kubectl kubeletadm' ? programName : (await import('./cli/adapters/program-prefix.ts')).ownPrefix(),
    acceptsUnknownFields: programName === 'kubeadm',
    output,
    signal,
    onForcedExit,
    input: localInput(stdin, stderr),
    absolutePath: (path) => resolve(path),
    clock: systemClock,
    homeDirectory: homedir(),
    hostname: hostname(),
    runtime: runtimeOfProcess(),
    self: thisProcess(),
    newId: async () => (await import('node:crypto')).randomBytes(8).toString('hex'),
    writeLocalFile,
    requireWritable,
    ...temporaryDirectories(onForcedExit),
    readHostEntries: async (root) => (await import('./cli/adapters/host-entries.ts')).readHostEntries(root),
    random: Math.random,
    watchFile: (path, onChange, signal) =>
      void import('./cli/adapters/watch-file.ts').then(({ watchFile }) => watchFile(path, onChange, signal)),
    serveLocal: async (host, port, answer) => (await import('./cli/adapters/http-local.ts')).serveLocal(host, port, answer),
    reporter: ({ format, verbosity }) =>
      format === 'json' ? jsonReporter(output, systemClock, verbosity) : textReporter(output, verbosity),
    connectCluster: async ({ kubeconfig, from, ...named }) => {
      const { kubeCluster } = await import('./kube/adapters/cluster-kube.ts');
      const { text, file } = kubeconfig;
      const origin = 'origin' in kubeconfig ? kubeconfig.origin : null;
      const target = { kubeconfig: { text: revealText(text), file, origin }, limiter, signal, ...named };
      return kubeCluster(from?.dial === undefined ? { ...target, env } : { ...target, dial: from.dial });
    },
    limitRequests: limiter.limit,
    web: { get: async (request) => (await import('./kube/adapters/https-client.ts')).nodeHttpsClient(env).get(request) },
  };
}

/** The local host; a root directory is made absolute. */
export async function connectLocalHost(target: HostTarget, reporter?: Reporter): Promise<Host> {
  const { localTransport } = await import('./host/adapters/transport-local.ts');
  const { rootDir } = target;
  return rootDir === undefined
    ? hostThrough(localTransport(), target, reporter)
    : hostThrough(localTransport({ name: rootDir }), { ...target, rootDir: resolve(rootDir) }, reporter);
}

/**
 * A host that a transport leads to, with the root directory and the time limit of its target.
 * @param reporter logs the requests to the host
 */
export async function hostThrough(
  transport: Transport | Promise<Transport>,
  target: HostTarget,
  reporter: Reporter | undefined,
): Promise<Host> {
  // Awaited together: the transport may fail before the modules are loaded.
  const [reached, { hostOverTransport }, { randomUUID }] = await Promise.all([
    transport,
    import('./host/host-over-transport.ts'),
    import('node:crypto'),
  ]);
  const { rootDir, commandTimeoutMs = target.member?.ssh.commandTimeoutMs } = target;
  return hostOverTransport(reached, {
    rootDir,
    commandTimeoutMs,
    nonce: randomUUID,
    reporter,
  });
}
