import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExitCode } from '../src/base/errors.ts';
import type { CommandServices } from '../src/cli/command.ts';
import { renamingOutput } from '../src/cli/program-name.ts';
import { startLab } from './lab.ts';
import { type LabAgents, startLabAgents } from './lab-agents.ts';
import type { Lab, LabRequest } from './lab-options.ts';
import { demoIntroduction, runLabDemo } from './print-demo.ts';

/** `lab`: runs a lab until it is interrupted, or a demo of the main commands (`--demo`). */
export async function runLab(services: CommandServices, request: LabRequest): Promise<ExitCode> {
  return request.demo ? runInDemoLab(services, request) : runUntilInterrupted(services, request);
}

/** The fleet file and the report of a demo in a temporary directory are kept. */
async function runInDemoLab(services: CommandServices, request: LabRequest): Promise<ExitCode> {
  const directory = request.directory ?? (await services.makeTemporaryDirectory('kubeletadm-demo-'));
  services.output.stdout(demoIntroduction(directory));
  const lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
  try {
    return await runLabDemo(services, { directory, lab, prefix: await prefixOf(services) });
  } finally {
    await lab.close();
    if (request.directory === undefined) await rm(lab.directory, { recursive: true, force: true });
  }
}

async function runUntilInterrupted(services: CommandServices, request: LabRequest): Promise<ExitCode> {
  const directory = request.directory ?? (await services.makeTemporaryDirectory('kubeletadm-lab-'));
  const lab = await startLab({ directory, hosts: request.hosts });
  let agents: LabAgents | null = null;
  try {
    const names = request.agents ? lab.hosts.map(({ name }) => name) : [];
    agents = await startLabAgents(services, { lab, names, trialMs: request.trialMs, failed: agentFailures(services) });
    renamingOutput(services.output, await prefixOf(services)).stdout(describeLab(lab));
    await untilInterrupted(services.signal);
    return 0;
  } finally {
    await agents?.close();
    await lab.close();
    if (request.directory === undefined) await services.removeTemporaryDirectory(directory);
  }
}

async function prefixOf({ commandPrefix, programName }: CommandServices): Promise<string> {
  return (await commandPrefix?.()) ?? programName;
}

/** Prints the failures of agents. */
function agentFailures({ output }: Pick<CommandServices, 'output'>): (nodeName: string, error: unknown) => void {
  return (nodeName, error) => output.stderr(`the agent of ${nodeName} failed: ${String(error)}\n`);
}

function describeLab(lab: Lab): string {
  const flags = `--ssh-config ${lab.sshConfig}`;
  const hosts = lab.hosts.map(({ name, port, rootDir }) => `  ${name}   127.0.0.1:${port}   ${rootDir}\n`).join('');
  const endpoint = lab.server.replace(/^https:\/\//, '');
  return `API server ${lab.server}
Hosts (each a directory behind an SSH server; commands over SSH run on this computer, as your user):
${hosts}
Try these commands in another terminal, in this order:
  kubeletadm cluster adopt --kubeconfig ${lab.kubeconfig} --control-plane-endpoint ${endpoint}
  kubeletadm join ${endpoint} --token ${lab.token.reveal()} --ca-cert ${lab.caFile} ${flags} --host node1
  kubeletadm token create --print-join-command --kubeconfig ${lab.kubeconfig}
  kubeletadm dynamic status --kubeconfig ${lab.kubeconfig}                # with --agents
  kubectl --kubeconfig ${lab.kubeconfig} -n kube-system get configmap kubelet-config -o yaml
  ssh -F ${lab.sshConfig} node1 'ls $KUBELETADM_ROOT/var/lib/kubelet'

A control plane of stand-in static pods, on a host that has not joined. Its endpoint must be this loopback address, and
other control planes cannot join it:
${controlPlaneCommands(lab)}
Ctrl-C stops the lab.
`;
}

/** Clients on the local host connect to the endpoint: the address of the host inside the lab may be another machine. */
function controlPlaneCommands({ hosts, sshConfig }: Lab): string {
  const last = hosts.at(-1);
  const commands = [
    `init --kubernetes-version v1.36.1 --control-plane-endpoint ${last?.loopback}:6443`,
    'certs renew all',
    'upgrade apply v1.36.2 --yes',
    'reset --force',
  ];
  return commands.map((command) => `  kubeletadm ${command} --ssh-config ${sshConfig} --host ${last?.name}\n`).join('');
}

function untilInterrupted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
