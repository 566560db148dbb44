import type { ExitCode } from '../base/errors.ts';
import { renderText } from '../base/text/styled.ts';
import { readOperatorKubeconfig } from '../kube/operator-kubeconfig.ts';
import { CONFIG_YAML, FLAGS_ENV, INSTANCE_CONFIG, KUBE_SYSTEM, KUBELET_CONFIG_NAME } from '../kube/well-known.ts';
import { startLabAgents } from '../lab/lab-agents.ts';
import type { Lab } from '../lab/lab-options.ts';
import type { CommandServices } from './command.ts';
import type { Output } from './services.ts';

/**
 * Demo of the main workflow: init on one host, join on the others, the resulting files and objects, and a
 * second run without changes. Every step runs a command line as if the user had typed it.
 */
export async function runLabDemo(services: CommandServices, lab: Lab): Promise<ExitCode> {
  const print = (text: string): void => services.output.stdout(`${text}\n`);
  const run = async (argv: readonly string[], output = services.output): Promise<ExitCode> => {
    const shown = argv.map((word, i) => (argv[i - 1] === '--token' ? '[token]' : word.replaceAll(lab.directory, '$LAB')));
    print(`\n$ kubeletadm ${shown.join(' ')}`);
    return services.runCommand(argv, output);
  };
  const ssh = ['--ssh-config', lab.sshConfig] as const;
  const [first, ...others] = lab.hosts.map(({ name }) => name);
  const endpoint = lab.server.replace(/^https:\/\//, '');
  const init = ['init', '--kubeconfig', lab.kubeconfig, '--control-plane-endpoint', endpoint, ...ssh, '--host', first ?? ''];
  print(`A lab in ${lab.directory}: an API server at ${lab.server} and ${lab.hosts.length} hosts behind SSH servers of their own.`);
  print('\n# 1. The first node: its kubelet is configured and started, the configuration for all others is uploaded.');
  let printed = '';
  const keeping: Output = {
    ...services.output,
    stdout: (text) => {
      printed += renderText(text, false);
      services.output.stdout(text);
    },
  };
  if ((await run(init, keeping)) !== 0) return 1;
  const joinAll = [...joinCommandIn(printed), ...ssh, ...others.flatMap((name) => ['--host', name])];
  print(
    '\n# 2. The other hosts run the join command that init printed and use the configuration in the cluster. Host-specific settings are detected (node2 uses systemd-resolved) or declared.',
  );
  if ((await run([...joinAll, '--set', 'maxPods=60'])) !== 0) return 1;
  print('\n# 3. The files on the hosts.');
  for (const host of lab.hosts) {
    const files = [CONFIG_YAML, INSTANCE_CONFIG, FLAGS_ENV];
    print(`${host.name}:`);
    for (const line of await services.listFiles(host.rootDir, ['etc/kubernetes', 'etc/systemd/system', 'var/lib/kubelet']))
      print(`  ${line}`);
    const config = await services.input.readText(`${host.rootDir}${files[0]}`);
    print(
      `  config.yaml: ${config
        .split('\n')
        .filter((line) => /^(cgroupDriver|clusterDomain|maxPods|resolvConf|rotateCertificates)/.test(line))
        .join(', ')}`,
    );
    print(`  kubeadm-flags.env: ${(await services.input.readText(`${host.rootDir}${files[2]}`)).trim()}`);
  }
  print('\n# 4. The configuration in the cluster.');
  const cluster = await services.connectCluster({ kubeconfig: await readOperatorKubeconfig(services.input, [lab.kubeconfig]) });
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: KUBELET_CONFIG_NAME });
  await cluster.close();
  const text = (found?.data as Readonly<Record<string, string>> | undefined)?.kubelet ?? '';
  print(
    `ConfigMap kube-system/kubelet-config, ${text.split('\n').length - 1} lines, annotations ${JSON.stringify(found?.metadata.annotations ?? {})}`,
  );
  print('\n# 5. A second run plans nothing.');
  const second = [
    await run([...init, '--dry-run', '--exit-code']),
    await run([...joinAll, '--set', 'maxPods=60', '--dry-run', '--exit-code']),
  ];
  const starts = lab.hosts.map(({ name, kubeletStarts }) => `${name} ${kubeletStarts()}`).join(', ');
  const isSame = second.every((code) => code === 0);
  print(`\nKubelet starts: ${starts}. ${isSame ? 'Nothing pending.' : 'CHANGES ARE PENDING.'}`);
  const dynamic = others.length === 0 ? true : await showDynamic(services, lab, { names: others, run, print });
  print('\nTo start a lab that keeps running: kubeletadm lab --agents');
  return isSame && dynamic ? 0 : 1;
}

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
/** Replaces the ten minutes of production, to keep the demo short. */
const TRIAL_MS = 2_000;

interface DynamicDemo {
  readonly names: readonly string[];
  readonly run: (argv: readonly string[]) => Promise<ExitCode>;
  readonly print: (text: string) => void;
}

/**
 * Rolls out two configurations to running kubelets, a valid and a failing one, and removes the assignment.
 * False: an unexpected result.
 */
async function showDynamic(services: CommandServices, lab: Lab, { names, run, print }: DynamicDemo): Promise<boolean> {
  const file = async (name: string, text: string): Promise<string> => {
    await services.writeLocalFile(`${lab.directory}/${name}`, OVERLAY + text);
    print(`\n$ cat $LAB/${name}\n${OVERLAY}${text.trimEnd()}`);
    return `${lab.directory}/${name}`;
  };
  const cluster = ['--kubeconfig', lab.kubeconfig] as const;
  const agents = await startLabAgents(services, { lab, names, trialMs: TRIAL_MS, failed: agentFailures(services) });
  try {
    await agents.untilReported();
    print(
      '\n# 6. Running kubelets receive a new configuration from the cluster. A node agent (kubeletadm agent) runs next to each kubelet; its trial takes 2 s in the lab instead of 10 min.',
    );
    const assign = ['dynamic', 'assign', ...names, ...cluster, '--min-ready', '0s', '--file'] as const;
    const good = await run([...assign, await file('more-pods.yaml', 'maxPods: 120\n'), '--wait', 'good']);
    await run(['dynamic', 'status', ...names, ...cluster]);
    print(
      '\n# 7. A configuration with which the kubelet would exit is refused. With --allow-pod-loss the canary rolls back automatically, and no other node is changed.',
    );
    const reserved = await file('reserved.yaml', 'systemReserved:\n  memory: 64Gi\n');
    const refused = await run([...assign, reserved]);
    const bad = await run([...assign, reserved, '--allow-pod-loss']);
    await run(['dynamic', 'status', ...names, ...cluster]);
    print('\n# 8. Return to the configuration from the join.');
    const reset = await run(['dynamic', 'reset', ...names, ...cluster, '--min-ready', '0s', '--max-unavailable', '100%']);
    return good === 0 && refused === 3 && bad === 4 && reset === 0;
  } finally {
    await agents.close();
  }
}

/** The arguments of the join command that init printed. */
function joinCommandIn(printed: string): readonly string[] {
  return /^ *kubeletadm (join .*)$/m.exec(printed)?.[1]?.split(' ').filter(Boolean) ?? ['join'];
}

/** Prints the failures of agents. */
export function agentFailures({ output }: Pick<CommandServices, 'output'>): (nodeName: string, error: unknown) => void {
  return (nodeName, error) => output.stderr(`the agent of ${nodeName} failed: ${String(error)}\n`);
}
