import { homedir, hostname } from 'node:os';
import { resolve } from 'node:path';
import { systemClock } from './adapters/clock-system.ts';
import { listFiles, localInput, makeTemporaryDirectory, removeTemporaryDirectory, writeLocalFile } from './adapters/input-local.ts';
import { jsonReporter } from './adapters/reporter-json.ts';
import { textReporter } from './adapters/reporter-text.ts';
import { thisProcess } from './adapters/this-process.ts';
import type { SshOverrides } from './core/ssh/resolve-target.ts';
import { revealText } from './core/text/secret.ts';
import type { Host } from './ports/host.ts';
import type { HostKeys } from './ports/host-keys.ts';
import type { FleetHostTarget, HostTarget, Output, Services, SshOptions } from './ports/services.ts';
import type { Transport } from './ports/transport.ts';
import { loadTemplates } from './template-files.ts';

/** What bin.ts has from the process. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly signal: AbortSignal;
}

/** Options to adapters. What is heavy (SSH, the Kubernetes client) is loaded when it is used. */
export function createServices(environment: Environment): Services {
  const { env, stdin, stdout, stderr, signal } = environment;
  const output: Output = {
    stdout: (text) => void stdout.write(text),
    stderr: (text) => void stderr.write(text),
    colour: stdout.isTTY === true && stderr.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb',
  };
  return {
    env,
    output,
    signal,
    input: localInput(stdin),
    clock: systemClock,
    homeDirectory: homedir(),
    hostname: hostname(),
    self: thisProcess(),
    newId: async () => (await import('node:crypto')).randomBytes(8).toString('hex'),
    writeLocalFile,
    makeTemporaryDirectory,
    removeTemporaryDirectory,
    listFiles,
    newToken: async () => {
      const [{ generateToken }, { randomInt }] = await Promise.all([import('./core/token/generate-token.ts'), import('node:crypto')]);
      return generateToken(randomInt);
    },
    confirm: async (question) => (await import('./adapters/prompt-terminal.ts')).confirmOnTerminal(question, stdin, stderr),
    templates: loadTemplates,
    reporter: ({ format, verbosity }) =>
      format === 'json' ? jsonReporter(output, systemClock, verbosity) : textReporter(output, verbosity),
    connectHost: (target) => connectHost(target, environment, output),
    openHostKeys: (ssh) => openHostKeys(ssh, environment),
    readSshConfig: async (configFile) =>
      (await (await import('./adapters/ssh-config.ts')).loadSshConfig({ variables: env, configFile: resolve(configFile) })).files,
    connectCluster: async ({ kubeconfig, file, context }) => {
      const { kubeCluster } = await import('./adapters/cluster-kube.ts');
      return kubeCluster({ kubeconfig: { text: revealText(kubeconfig), file }, env, ...(context === undefined ? {} : { context }) });
    },
    web: { get: async (request) => (await import('./adapters/kube/web.ts')).nodeWeb(env).get(request) },
    startLab: async (options) => (await import('./lab/lab.ts')).startLab(options),
  };
}

async function connectHost(target: HostTarget, environment: Environment, output: Output): Promise<Host> {
  const [{ hostOver }, { randomBytes }] = await Promise.all([import('./engine/host.ts'), import('node:crypto')]);
  const way = target.member ?? target.address;
  const rootDir = target.rootDir === undefined ? {} : { rootDir: way === undefined ? resolve(target.rootDir) : target.rootDir };
  const transport = way === undefined ? await localHost(target) : await sshHost(way, target.ssh ?? {}, environment, output);
  return hostOver(transport, { ...rootDir, nonce: () => randomBytes(12).toString('hex') });
}

async function localHost(target: HostTarget): Promise<Transport> {
  const { localTransport } = await import('./adapters/transport-local.ts');
  return localTransport(target.rootDir === undefined ? {} : { name: target.rootDir });
}

/** What the command line says of all hosts. */
function sshOverrides(ssh: SshOptions): SshOverrides {
  return {
    identityFiles: ssh.identityFiles ?? [],
    ...(ssh.knownHostsFile === undefined ? {} : { userKnownHostsFiles: [resolve(ssh.knownHostsFile)] }),
    ...(ssh.acceptNewHostKeys === true ? { strictHostKeyChecking: 'accept-new' as const } : {}),
    ...(ssh.connectTimeoutMs === undefined ? {} : { connectTimeoutMs: ssh.connectTimeoutMs }),
  };
}

async function openHostKeys(ssh: SshOptions, { env }: Environment): Promise<HostKeys> {
  const [{ loadSshConfig }, { knownHostsStore }, { sshHostKeys }] = await Promise.all([
    import('./adapters/ssh-config.ts'),
    import('./adapters/known-hosts.ts'),
    import('./adapters/ssh/host-keys.ts'),
  ]);
  const config = await loadSshConfig({ variables: env, ...(ssh.configFile === undefined ? {} : { configFile: ssh.configFile }) });
  const { passphrase } = ssh;
  return sshHostKeys(config, sshOverrides(ssh), {
    hostKeys: knownHostsStore(),
    ...(ssh.password === undefined ? {} : { password: ssh.password }),
    ...(passphrase === undefined ? {} : { askPassphrase: async () => passphrase }),
  });
}

/** @param way an SSH destination, or a host of a fleet */
async function sshHost(way: string | FleetHostTarget, ssh: SshOptions, { env }: Environment, output: Output): Promise<Transport> {
  const [{ loadSshConfig }, { resolveSshTarget }, { sshTransport }, { knownHostsStore }, { asRoot }, { formatProblem }] = await Promise.all(
    [
      import('./adapters/ssh-config.ts'),
      import('./core/ssh/resolve-target.ts'),
      import('./adapters/transport-ssh.ts'),
      import('./adapters/known-hosts.ts'),
      import('./engine/as-root.ts'),
      import('./core/errors.ts'),
    ],
  );
  const config = await loadSshConfig({ variables: env, ...(ssh.configFile === undefined ? {} : { configFile: ssh.configFile }) });
  const overrides = sshOverrides(ssh);
  const target =
    typeof way === 'string'
      ? resolveSshTarget(way, config, overrides)
      : (await import('./core/fleet/ssh-target.ts')).fleetSshTarget(way, config, { directory: way.directory, overrides });
  // Another way of becoming root on the command line counts for all hosts.
  const become = typeof way === 'string' || (ssh.become ?? 'auto') !== 'auto' ? (ssh.become ?? 'auto') : way.ssh.become;
  const { passphrase } = ssh;
  const transport = sshTransport(target, {
    hostKeys: knownHostsStore(),
    notice: (problem) => output.stderr(`${formatProblem(problem)}\n`),
    ...(ssh.password === undefined ? {} : { password: ssh.password }),
    ...(passphrase === undefined ? {} : { askPassphrase: async () => passphrase }),
  });
  return asRoot(transport, { become, ...(ssh.sudoPassword === undefined ? {} : { sudoPassword: ssh.sudoPassword }) });
}
