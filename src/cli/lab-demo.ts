import type { ExitCode } from '../core/errors.ts';
import type { Lab, Output } from '../ports/services.ts';
import type { CommandServices } from './program.ts';

/**
 * The main job in the lab: init on one host, join on the others, what is then there, and the second run that plans nothing. Every step is a command line that
 * is run as if it had been typed.
 */
export async function runLabDemo(services: CommandServices, lab: Lab): Promise<ExitCode> {
  const say = (text: string): void => services.output.stdout(`${text}\n`);
  const run = async (argv: readonly string[], output = services.output): Promise<ExitCode> => {
    const shown = argv.map((word, i) => (argv[i - 1] === '--token' ? '[token]' : word.replaceAll(lab.directory, '$LAB')));
    say(`\n$ kubeletadm ${shown.join(' ')}`);
    return services.runCommand(argv, output);
  };
  const ssh = ['--ssh-config', lab.sshConfig] as const;
  const [first, ...others] = lab.hosts.map(({ name }) => name);
  const endpoint = lab.server.replace(/^https:\/\//, '');
  const init = ['init', '--kubeconfig', lab.kubeconfig, '--control-plane-endpoint', endpoint, ...ssh, '--host', first ?? ''];
  say(`A lab in ${lab.directory}: an API server at ${lab.server} and ${lab.hosts.length} hosts behind SSH servers of their own.`);
  say('\n# 1. The first node: its kubelet is configured and started, the configuration for all others is uploaded.');
  let printed = '';
  const keeping: Output = {
    ...services.output,
    stdout: (text) => {
      printed += text;
      services.output.stdout(text);
    },
  };
  if ((await run(init, keeping)) !== 0) return 1;
  const joinAll = [...joinCommandIn(printed), ...ssh, ...others.flatMap((name) => ['--host', name])];
  say(
    '\n# 2. The others join by the command that init printed, with what is in the cluster; what differs by host is detected there (node2 has systemd-resolved) or declared.',
  );
  if ((await run([...joinAll, '--set', 'maxPods=60'])) !== 0) return 1;
  say('\n# 3. What is on the hosts now.');
  for (const host of lab.hosts) {
    const files = ['/var/lib/kubelet/config.yaml', '/var/lib/kubelet/instance-config.yaml', '/var/lib/kubelet/kubeadm-flags.env'];
    say(`${host.name}:`);
    for (const line of await services.listFiles(host.rootDir, ['etc/kubernetes', 'etc/systemd/system', 'var/lib/kubelet']))
      say(`  ${line}`);
    const config = await services.input.readText(`${host.rootDir}${files[0]}`);
    say(
      `  config.yaml says ${config
        .split('\n')
        .filter((line) => /^(cgroupDriver|clusterDomain|maxPods|resolvConf|rotateCertificates)/.test(line))
        .join(', ')}`,
    );
    say(`  kubeadm-flags.env says ${(await services.input.readText(`${host.rootDir}${files[2]}`)).trim()}`);
  }
  say('\n# 4. What is in the cluster.');
  const cluster = await services.connectCluster({ kubeconfig: await services.input.readText(lab.kubeconfig), file: lab.kubeconfig });
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubelet-config' });
  await cluster.close();
  const text = (found?.data as Readonly<Record<string, string>> | undefined)?.kubelet ?? '';
  say(
    `ConfigMap kube-system/kubelet-config, ${text.split('\n').length - 1} lines, annotations ${JSON.stringify(found?.metadata.annotations ?? {})}`,
  );
  say('\n# 5. A second run plans nothing.');
  const second = [
    await run([...init, '--dry-run', '--exit-code']),
    await run([...joinAll, '--set', 'maxPods=60', '--dry-run', '--exit-code']),
  ];
  const starts = lab.hosts.map(({ name, kubeletStarts }) => `${name} ${kubeletStarts()}`).join(', ');
  say(
    `\nKubelet starts: ${starts}. ${second.every((code) => code === 0) ? 'Nothing pending.' : 'CHANGES ARE PENDING.'} Keep a lab up to play with: kubeletadm lab`,
  );
  return second.every((code) => code === 0) ? 0 : 1;
}

/** The words of the command that init printed for other nodes. */
function joinCommandIn(printed: string): readonly string[] {
  return /^ *kubeletadm (join .*)$/m.exec(printed)?.[1]?.split(' ').filter(Boolean) ?? ['join'];
}
