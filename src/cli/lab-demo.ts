import type { ExitCode } from '../base/errors.ts';
import { renderText } from '../base/text/styled.ts';
import { readOperatorKubeconfig } from '../kube/operator-kubeconfig.ts';
import { CONFIG_YAML, FLAGS_ENV, INSTANCE_CONFIG, KUBE_SYSTEM, KUBELET_CONFIG_NAME } from '../kube/well-known.ts';
import type { Lab } from '../lab/lab-options.ts';
import type { CommandServices } from './command.ts';
import { startLabAgents } from './lab-agents.ts';
import type { Output } from './services.ts';

/**
 * The main job in the lab: init on one host, join on the others, what is then there, and the second run that plans nothing. Every step is a command line that
 * is run as if it had been typed.
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
    '\n# 2. The others join by the command that init printed, with what is in the cluster; what differs by host is detected there (node2 has systemd-resolved) or declared.',
  );
  if ((await run([...joinAll, '--set', 'maxPods=60'])) !== 0) return 1;
  print('\n# 3. What is on the hosts now.');
  for (const host of lab.hosts) {
    const files = [CONFIG_YAML, INSTANCE_CONFIG, FLAGS_ENV];
    print(`${host.name}:`);
    for (const line of await services.listFiles(host.rootDir, ['etc/kubernetes', 'etc/systemd/system', 'var/lib/kubelet']))
      print(`  ${line}`);
    const config = await services.input.readText(`${host.rootDir}${files[0]}`);
    print(
      `  config.yaml says ${config
        .split('\n')
        .filter((line) => /^(cgroupDriver|clusterDomain|maxPods|resolvConf|rotateCertificates)/.test(line))
        .join(', ')}`,
    );
    print(`  kubeadm-flags.env says ${(await services.input.readText(`${host.rootDir}${files[2]}`)).trim()}`);
  }
  print('\n# 4. What is in the cluster.');
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
  print('\nKeep a lab up to play with: kubeletadm lab --agents');
  return isSame && dynamic ? 0 : 1;
}

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
/** In place of ten minutes: nobody waits that long to see it. */
const TRIAL_MS = 2_000;

interface DynamicDemo {
  readonly names: readonly string[];
  readonly run: (argv: readonly string[]) => Promise<ExitCode>;
  readonly print: (text: string) => void;
}

/** A configuration from the cluster for kubelets that run: one that is good, one that is not, and the way back. False: not as it should be. */
async function showDynamic(services: CommandServices, lab: Lab, { names, run, print }: DynamicDemo): Promise<boolean> {
  const file = async (name: string, text: string): Promise<string> => {
    await services.writeLocalFile(`${lab.directory}/${name}`, OVERLAY + text);
    print(`\n$ cat $LAB/${name}\n${OVERLAY}${text.trimEnd()}`);
    return `${lab.directory}/${name}`;
  };
  const cluster = ['--kubeconfig', lab.kubeconfig] as const;
  const agents = await startLabAgents(services, lab, names, TRIAL_MS);
  try {
    await agents.untilReported();
    print(
      '\n# 6. Kubelets that run get another configuration from the cluster. An agent runs beside each (kubeletadm agent); its trial takes 2 s here in place of 10 min.',
    );
    const assign = ['dynamic', 'assign', ...names, ...cluster, '--min-ready', '0s', '--file'] as const;
    const good = await run([...assign, await file('more-pods.yaml', 'maxPods: 120\n'), '--wait', 'good']);
    await run(['dynamic', 'status', ...names, ...cluster]);
    print(
      '\n# 7. A configuration that passes every check but crashes the kubelet: the canary rolls back automatically, and no other node is changed.',
    );
    const bad = await run([...assign, await file('reserved.yaml', 'systemReserved:\n  memory: 64Gi\n')]);
    await run(['dynamic', 'status', ...names, ...cluster]);
    print('\n# 8. Back to what the nodes were joined with.');
    const reset = await run(['dynamic', 'reset', ...names, ...cluster, '--min-ready', '0s', '--max-unavailable', '100%']);
    return good === 0 && bad === 4 && reset === 0;
  } finally {
    await agents.close();
  }
}

/** The words of the command that init printed for other nodes. */
function joinCommandIn(printed: string): readonly string[] {
  return /^ *kubeletadm (join .*)$/m.exec(printed)?.[1]?.split(' ').filter(Boolean) ?? ['join'];
}
