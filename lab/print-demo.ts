import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExitCode } from '../src/base/errors.ts';
import { quoteShell } from '../src/base/text/shell-quote.ts';
import { styled } from '../src/base/text/styled.ts';
import { renderTable } from '../src/base/text/table.ts';
import type { CommandServices } from '../src/cli/command.ts';
import { textReporter } from '../src/cli/output/reporter-text.ts';
import { renamingOutput } from '../src/cli/program-name.ts';
import type { Cluster } from '../src/kube/cluster.ts';
import { readOperatorKubeconfig } from '../src/kube/operator-kubeconfig.ts';
import { type Fold, foldOutput } from './fold-output.ts';
import type { Lab } from './lab-options.ts';
import { ACTS, DEMO_FLEET, type DemoStage, demoCluster, NotObserved } from './run-demo.ts';

/** The shown lines of commands that print many; the others are shown completely. */
const FOLDS: Readonly<Record<string, Fold>> = { plan: { head: 3, tail: 6 }, certs: { head: 1, tail: 4 } };
const COMPLETE: Fold = { head: Number.POSITIVE_INFINITY, tail: 0 };

/**
 * `lab --demo`: five acts with the hosts of a lab, each with its observed result.
 * @param directory gets the fleet file and the report; its directory `lab` is that of the lab
 * @param prefix the words that start this program
 * @returns 1 if an act had another result than its sentence; the acts after it are not played
 */
export async function runLabDemo(
  services: CommandServices,
  { directory, lab, prefix }: { readonly directory: string; readonly lab: Lab; readonly prefix: string },
): Promise<ExitCode> {
  const { output, clock, signal } = services;
  const print = (text: string): void => output.stdout(`${text}\n`);
  const stage = await setStage(services, { directory, lab, prefix });
  const startedAt = clock.now().getTime();
  for (const [index, { title, play }] of ACTS.entries()) {
    output.stdout([`\n${index + 1}/${ACTS.length} `, styled('bold', title), '\n']);
    try {
      const observed = await play(stage);
      output.stdout([styled('green', '✓'), ` observed: ${observed}\n`]);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof NotObserved)) throw error;
      output.stdout([styled('red', '✗'), ` not observed: ${error.message}\n`]);
      return 1;
    }
  }
  const seconds = Math.round((clock.now().getTime() - startedAt) / 1000);
  output.stdout([
    '\n',
    styled('bold', `All ${ACTS.length} acts were observed, in ${seconds} s.`),
    ' The hosts are gone. The report of the run that rolled back:\n',
  ]);
  const next = renderTable(nextCommands(prefix).map(([command, purpose]) => [`  ${command}`, `# ${purpose}`]));
  print([`  ${stage.reportFile}`, 'Next:', ...next].join('\n'));
  return 0;
}

/** What the demo is, before it starts. */
export function demoIntroduction(directory: string): string {
  return `This demo takes about half a minute. On three simulated hosts, you see
  1. one file become a cluster            2. a change that one host tries before the others
  3. a bad value that rolls itself back   4. drift, down to the line of the file   5. new certificates
The hosts are directories behind real SSH servers; the API server, the kubelets and the containers are stand-ins.
It needs no root and no network. Its files are in ${directory}, the logs of its
runs in ~/.local/state/kubeletadm. Long output is shortened (…).
`;
}

/** The commands after the demo, and their purpose. They work in the directory in which the demo was started. */
function nextCommands(prefix: string): readonly (readonly [string, string])[] {
  return [
    [`${prefix} lab --agents`, 'three new hosts until Ctrl-C, with commands to try'],
    [`${prefix} explain maxPods`, 'what a field of the kubelet does, and its rules'],
    [`${prefix} fleet init -f -`, 'a fleet file to start from, for your own hosts'],
  ];
}

/** Writes the files of the demo. */
async function setStage(
  services: CommandServices,
  { directory, lab, prefix }: { readonly directory: string; readonly lab: Lab; readonly prefix: string },
): Promise<DemoStage> {
  const { output, signal } = services;
  const fleetFile = join(directory, 'fleet.yaml');
  const kubeconfig = join(lab.directory, 'demo.conf');
  const hostOf = (name: string) => lab.hosts.find((host) => host.name === name) as Lab['hosts'][number];
  const pathOf = (host: string, path: string): string => join(hostOf(host).rootDir, path);
  await writeFile(fleetFile, DEMO_FLEET);
  await writeFile(join(directory, 'cluster.yaml'), demoCluster(`${hostOf('node1').loopback}:6443`));
  const reportFile = join(directory, 'report.html');
  await rm(reportFile, { force: true });
  const ask = async <T>(question: (cluster: Cluster) => Promise<T>): Promise<T> => {
    const cluster = await services.connectCluster({ kubeconfig: await readOperatorKubeconfig(services.input, [kubeconfig]) });
    try {
      return await question(cluster);
    } finally {
      await cluster.close();
    }
  };
  return {
    ...{ fleetFile, reportFile, pathOf, sshConfig: lab.sshConfig },
    run: async (argv) => {
      signal.throwIfAborted();
      output.stdout([styled('cyan', `$ ${[prefix, ...argv.map(quoteShell)].join(' ')}`), '\n']);
      const folded = foldOutput(renamingOutput(output, prefix), FOLDS[argv[0] ?? ''] ?? COMPLETE);
      const reporter: CommandServices['reporter'] = ({ verbosity }) => textReporter(folded.output, verbosity);
      const exitCode = await services.runCommand(argv, { output: folded.output, reporter });
      folded.end();
      if (exitCode !== 0) output.stdout(`(exit code ${exitCode})\n`);
      return { exitCode, ...folded.printed() };
    },
    runProgram: async (argv) => {
      output.stdout([styled('cyan', `$ ${argv.map(quoteShell).join(' ')}`), '\n']);
      output.stdout(await services.runLocal(argv));
    },
    readHostFile: async (host, path) => {
      const file = pathOf(host, path);
      return { text: await readFile(file, 'utf8'), changedAt: (await stat(file)).mtimeMs };
    },
    kubeletStarts: (host) => hostOf(host).kubeletStarts(),
    readNodes: () =>
      ask(async (cluster) => {
        const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
        return items.map(describeNode).toSorted((a, b) => (a.name < b.name ? -1 : 1));
      }),
    readReport: () => readFile(reportFile, 'utf8'),
  };
}

function describeNode({ metadata, status }: { readonly metadata: { readonly name: string }; readonly status?: unknown }) {
  const { conditions = [], capacity } = (status ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly capacity?: Readonly<Record<string, string>>;
  };
  const isReady = conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  return { name: metadata.name, isReady, pods: capacity?.pods ?? '' };
}
