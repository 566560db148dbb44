import type { ExitCode } from '../src/base/errors.ts';
import { renderText } from '../src/base/text/styled.ts';
import type { CommandServices } from '../src/cli/command.ts';
import type { Output } from '../src/cli/output/services.ts';
import type { Lab } from './lab-options.ts';
import { type DemoEvent, type DemoStep, type DemoView, runDemo } from './run-demo.ts';

/** `lab --demo`: exit code 1 if a step has an unexpected result. */
export async function runLabDemo(services: CommandServices, lab: Lab): Promise<ExitCode> {
  const print = (text: string): void => services.output.stdout(`${text}\n`);
  const shorten = (text: string): string => text.replaceAll(lab.directory, '$LAB');
  print(`A lab in ${lab.directory}: an API server at ${lab.server} and ${lab.hosts.length} hosts behind SSH servers of their own.`);
  const result = await runDemo(services, lab, {
    run: (argv) => {
      print(`\n$ kubeletadm ${argv.map((word, i) => (argv[i - 1] === '--token' ? '[token]' : shorten(word))).join(' ')}`);
      return runCaptured(services, argv);
    },
    report: (event) => print(describeEvent(event, shorten)),
    agentFailed: agentFailures(services),
  });
  if (result !== 'stopped') print('\nTo start a lab that keeps running: kubeletadm lab --agents');
  return result === 'succeeded' ? 0 : 1;
}

/** Prints the output of a command line, and returns it. */
async function runCaptured({ output, runCommand }: CommandServices, argv: readonly string[]): ReturnType<DemoView['run']> {
  let printed = '';
  const capturing: Output = {
    ...output,
    stdout: (text) => {
      printed += renderText(text, false);
      output.stdout(text);
    },
  };
  return { exitCode: await runCommand(argv, capturing), stdout: printed };
}

const STEPS: Readonly<Record<DemoStep, string>> = {
  adopt: '1. The configuration for all nodes is uploaded to the cluster, with the rules that let nodes join.',
  join: '2. The hosts run the printed join command and use the configuration in the cluster. Host-specific settings are detected (node2 uses systemd-resolved) or declared.',
  files: '3. The files on the hosts.',
  cluster: '4. The configuration in the cluster.',
  'second-run': '5. A second run plans nothing.',
  assign:
    '6. Running kubelets receive a new configuration from the cluster. A node agent (kubeletadm agent) runs next to each kubelet; its trial takes 2 s in the lab instead of 10 min.',
  refuse:
    '7. A configuration with which the kubelet would exit is refused. With --allow-pod-loss the canary rolls back automatically, and no other node is changed.',
  reset: '8. Return to the configuration from the join.',
};

function describeEvent(event: DemoEvent, shorten: (text: string) => string): string {
  switch (event.kind) {
    case 'step':
      return `\n# ${STEPS[event.step]}`;
    case 'file-written':
      return `\n$ cat ${shorten(event.path)}\n${event.text.trimEnd()}`;
    case 'host-files':
      return [
        `${event.host}:`,
        ...event.files.map((line) => `  ${line}`),
        `  config.yaml: ${event.configLines.join(', ')}`,
        `  kubeadm-flags.env: ${event.flagsEnv}`,
      ].join('\n');
    case 'cluster-config':
      return `ConfigMap kube-system/kubelet-config, ${event.lines} lines, annotations ${JSON.stringify(event.annotations)}`;
    case 'starts': {
      const starts = event.starts.map(({ host, count }) => `${host} ${count}`).join(', ');
      return `\nNumber of kubelet starts: ${starts}. ${event.isUnchanged ? 'No change is pending.' : 'CHANGES ARE PENDING.'}`;
    }
  }
}

/** Prints the failures of agents. */
export function agentFailures({ output }: Pick<CommandServices, 'output'>): (nodeName: string, error: unknown) => void {
  return (nodeName, error) => output.stderr(`the agent of ${nodeName} failed: ${String(error)}\n`);
}
