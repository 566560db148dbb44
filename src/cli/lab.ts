import { type ExitCode, usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import type { Lab } from '../lab/lab-options.ts';
import type { CommandOptions, CommandServices } from './command.ts';
import { type LabAgents, startLabAgents } from './lab-agents.ts';
import { runLabDemo } from './lab-demo.ts';
import { flagText } from './read-options.ts';

/** `lab`: keeps a lab up until it is interrupted, or shows what can be done in it (`--demo`). */
export async function runLab(services: CommandServices, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const given = flagText(options, 'dir');
  const directory = given ?? (await services.makeTemporaryDirectory('kubeletadm-lab-'));
  const lab = await services.startLab({ directory, hosts: typeof options.hosts === 'number' ? options.hosts : 3 });
  let agents: LabAgents | null = null;
  try {
    if (options.demo === true) return await runLabDemo(services, lab);
    const names = options.agents === true ? lab.hosts.map(({ name }) => name) : [];
    agents = await startLabAgents(services, lab, names, trialOf(options));
    services.output.stdout(describeLab(lab));
    await untilInterrupted(services.signal);
    return 0;
  } finally {
    await agents?.close();
    await lab.close();
    if (given === undefined) await services.removeTemporaryDirectory(directory);
  }
}

function describeLab(lab: Lab): string {
  const flags = `--ssh-config ${lab.sshConfig}`;
  const hosts = lab.hosts.map(({ name, port, rootDir }) => `  ${name}   127.0.0.1:${port}   ${rootDir}\n`).join('');
  const endpoint = lab.server.replace(/^https:\/\//, '');
  return `API server ${lab.server}
Hosts (each a directory behind an SSH server):
${hosts}
Try, in another terminal:
  kubeletadm init --kubeconfig ${lab.kubeconfig} --control-plane-endpoint ${endpoint} ${flags} --host node1 --dry-run
  kubeletadm join ${endpoint} --token ${lab.token.reveal()} --ca-cert ${lab.caFile} ${flags} --host node2
  kubeletadm token create --print-join-command --kubeconfig ${lab.kubeconfig}
  kubeletadm dynamic status --kubeconfig ${lab.kubeconfig}                # with --agents
  kubectl --kubeconfig ${lab.kubeconfig} -n kube-system get configmap kubelet-config -o yaml
  ssh -F ${lab.sshConfig} node1 ls

Ctrl-C ends it.
`;
}

function trialOf(options: CommandOptions): number {
  const text = flagText(options, 'trial') ?? '';
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds < 0n) throw usageError(`--trial: invalid duration "${text}"`, 'Write it like 10s');
  return Number(nanoseconds / 1_000_000n);
}

function untilInterrupted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
