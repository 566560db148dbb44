import { resolve } from 'node:path';
import { systemClock } from './base/adapters/clock-system.ts';
import type { Reporter } from './base/reporter.ts';
import { escapeUnprintable } from './base/text/printable.ts';
import type { Services } from './cli/output/services.ts';
import type { HostTarget } from './fleet/host-target.ts';
import type { LocalCommandOptions } from './fleet/ports.ts';
import type { Host } from './host/access/host.ts';
import type { Environment } from './run-process.ts';
import { connectLocalHost, hostThrough, localServices } from './wiring-local.ts';
import { type SshAccess, sshAccess } from './wiring-ssh.ts';

/** Wires options to adapters. Heavy modules (SSH, the Kubernetes client) are loaded on first use. */
export function createServices(environment: Environment): Services {
  const { env, stdin, stderr, program, signal, onForcedExit } = environment;
  const loadTerminal = async () => {
    const [{ liveTerminal }, { terminalEcho }] = await Promise.all([
      import('./cli/adapters/live-terminal.ts'),
      import('./cli/adapters/terminal-echo.ts'),
    ]);
    return { ...liveTerminal(stderr), echo: terminalEcho(stdin) };
  };
  const local = localServices(environment, loadTerminal);
  const ssh = sshAccess(env, local.output.stderr);
  const services: Services = {
    ...local,
    readProgram: async (path) => (await import('./host/adapters/large-file.ts')).readProgram(path, program),
    validateInThreads: async (files, rules) =>
      (await import('./cli/adapters/validation-threads.ts')).validateInThreads(program?.script ?? '', files, rules),
    runLocal: (argv, options) => runLocal(argv, { ...options, signal }),
    bundleFiles: async () => (await import('./host/adapters/bundle-files.ts')).bundleFiles({ signal, onForcedExit }),
    newToken: async () => {
      const [{ generateToken }, { randomInt }] = await Promise.all([import('./kubeadm/token/token-secret.ts'), import('node:crypto')]);
      return generateToken(randomInt);
    },
    certificateIssuer: async () => (await import('./x509/adapters/certificate-issuer.ts')).certificateIssuer,
    canAsk: stdin.isTTY === true && stderr.isTTY === true,
    confirm: async (question) =>
      (await import('./cli/adapters/prompt-terminal.ts')).confirmOnTerminal(escapeUnprintable(question), stdin, stderr),
    runEditor: async (editor, path) => (await import('./cli/adapters/run-editor.ts')).runEditor(editor, path),
    templates: async () => (await import('./template-files.ts')).loadTemplates(),
    problemPages: async () => (await import('./problem-pages.ts')).loadProblemPages(),
    serveHooks: async (options) => (await import('./rollouts/cluster-api/adapters/hook-server.ts')).serveHooks(options),
    connectHost: (target, reporter) => connectHost(target, { ssh, reporter }),
    runJournals: async () => (await import('./fleet/adapters/run-journals.ts')).localRunJournals(env),
    planSignatures: async () => (await import('./fleet/adapters/plan-signatures.ts')).sshKeygenSignatures(),
    signWithSsh: async (text, signing) => (await import('./ssh/adapters/openssh/ssh-keygen.ts')).signWithSshKeygen(text, signing),
    openHostKeys: (options) => ssh.hostKeys(options),
    readSshConfig: async (configFile) =>
      (await import('./ssh/adapters/ssh-config.ts')).loadSshConfig({ variables: env, configFile: configFile && resolve(configFile) }),
    connectEtcd: async ({ from, ...target }) => {
      const { etcdMembers } = await import('./kubeadm/adapters/etcd-members.ts');
      return etcdMembers({ ...target, clock: systemClock, dial: from.dial });
    },
    inRoot: async (directory) => (await import('./wiring-root.ts')).servicesInRoot(services, directory),
  };
  return services;
}

function connectHost(
  target: HostTarget,
  { ssh, reporter }: { readonly ssh: SshAccess; readonly reporter: Reporter | undefined },
): Promise<Host> {
  const route = target.member ?? target.address;
  if (route === undefined) return connectLocalHost(target, reporter);
  const commandTimeoutMs = target.commandTimeoutMs ?? target.member?.ssh.commandTimeoutMs;
  return hostThrough(ssh.transport(route, target.ssh ?? {}, { commandTimeoutMs }), target, reporter);
}

async function runLocal(
  argv: readonly string[],
  { timeoutMs = 120_000, onStderr, stdin, ignoresInterruption = false, signal }: LocalCommandOptions & { readonly signal: AbortSignal },
): Promise<string> {
  const [{ localTransport }, { localCommandFailed }] = await Promise.all([
    import('./host/adapters/transport-local.ts'),
    import('./host/host-problems.ts'),
  ]);
  const transport = localTransport({ name: 'local host' });
  const { exitCode, stdout, stderr } = await transport.run(argv, {
    timeoutMs,
    ...(stdin === undefined ? {} : { stdin }),
    ...(ignoresInterruption ? {} : { signal }),
  });
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
  if (exitCode !== 0) throw localCommandFailed(argv, { exitCode, stderr: text(stderr) });
  onStderr?.(text(stderr));
  return text(stdout);
}
