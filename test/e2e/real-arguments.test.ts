import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Arg } from '../../src/base/arg.ts';
import { inParallel } from '../../src/base/in-parallel.ts';
import type { ClusterConfiguration } from '../../src/kubeadm/config/model.ts';
import { componentArgumentFindings, loadComponentFlags } from '../../src/kubeadm/control-plane/component-flags.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { unknownFlag, wrongArgument } from '../../src/kubelet/flags/check-extra-args.ts';
import { requirement } from '../support/requirement.ts';

const ASSETS = process.env.KUBEBUILDER_ASSETS ?? '';
const [flags, catalogue] = [await loadComponentFlags(), await loadCatalogue()];
const VERSION = 'v1.36.2';

/** Values of every type, well-formed and malformed. */
const VALUES = [
  '',
  'x',
  'true',
  'T',
  'no',
  '7',
  '-7',
  '0x1F',
  '1_000',
  '08',
  '1.5',
  '1e3',
  '.5',
  'NaN',
  '1s',
  '1d',
  '1h30m',
  '0',
  '127.0.0.1',
  '::1',
  'localhost',
  '7,8',
  '1Mi',
  'a=b',
];
const UNKNOWN = [
  'nothing',
  'insecure-port',
  'cloud-config',
  'audit-log-pth',
  'log-dir',
  'logtostderr',
  'network-plugin',
  'experimental-nothing',
  'bind_adress',
  'H',
];

/** Whether a program rejects an argument while it parses its flags. With --help it does not start. */
function isRejected(program: string, { name, value }: Arg): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(join(ASSETS, program), [`--${name}=${value}`, '--help'], { maxBuffer: 1 << 24 }, (_, stdout, stderr) =>
      resolve(/unknown flag|invalid argument|flag provided but not defined|^invalid (?:boolean )?value /m.test(`${stderr}\n${stdout}`)),
    );
  });
}

const COMPONENTS: Readonly<Record<string, (args: readonly Arg[]) => ClusterConfiguration>> = {
  'kube-apiserver': (extraArgs) => ({ apiServer: { extraArgs } }),
  'kube-controller-manager': (extraArgs) => ({ controllerManager: { extraArgs } }),
  'kube-scheduler': (extraArgs) => ({ scheduler: { extraArgs } }),
  etcd: (extraArgs) => ({ etcd: { local: { extraArgs } } }),
};

function isError(program: string, arg: Arg): boolean {
  const cluster = COMPONENTS[program]?.([arg]);
  if (cluster === undefined) {
    const problem = unknownFlag(arg, 36, catalogue) ?? wrongArgument(arg, 36, catalogue);
    // The kubelet checks the name of the cloud provider later.
    return problem !== null && problem.code !== 'CLOUD_PROVIDER_GONE';
  }
  return componentArgumentFindings({ ...cluster, kubernetesVersion: VERSION }, flags, VERSION).some(
    ({ problem }) => problem.severity !== 'warning',
  );
}

function namesOf(program: string): readonly string[] {
  if (program === 'kubelet') return [...catalogue.flags.keys()];
  const known = flags[program as keyof typeof flags];
  return known.flags.map(({ flag }) => flag);
}

const missing = existsSync(join(ASSETS, 'kube-scheduler')) ? null : 'KUBEBUILDER_ASSETS has no kube-scheduler';

describe.skipIf(requirement('arguments of real components', missing))('arguments of real components', () => {
  it.each([...Object.keys(COMPONENTS), 'kubelet'])('%s rejects all arguments that are errors', async (program) => {
    const names = namesOf(program);
    // One value for each flag tests its name; some flags get all values.
    const args = [...names, ...UNKNOWN].map((name, i) => ({ name, value: VALUES[i % VALUES.length] as string }));
    const all = names.filter((_, i) => i % 12 === 0).flatMap((name) => VALUES.map((value) => ({ name, value })));
    const wrong = await inParallel([...args, ...all], 4, async (arg) => {
      const [expected, found] = [isError(program, arg), await isRejected(program, arg)];
      return { arg: `--${arg.name}=${arg.value}`, expected, found };
    });
    // Values of strings, lists and maps are not checked.
    expect(wrong.filter(({ expected, found }) => expected && !found)).toEqual([]);
    const known = new Set(names);
    const unnoticed = wrong.filter(({ arg, expected, found }) => found && !expected && !known.has(arg.slice(2).split('=')[0] ?? ''));
    expect(unnoticed).toEqual([]);
  });
});
