import type { Command } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { VERSION } from '../version.ts';
import type { On } from './command.ts';
import { flagChoice } from './option-values.ts';
import type { Services } from './output/services.ts';
import { outputOption } from './output-options.ts';

/** `version`. */
export function defineVersion(version: Command, on: On): void {
  on(
    version.addOption(outputOption(['text', 'short', 'json', 'yaml'])),
    (_, options) => flagChoice(options, 'output', ['text', 'short', 'json', 'yaml']),
    runVersion,
  );
}

/** The version of kubeadm whose command line, files and objects this program has. */
const KUBEADM_VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.2' } as const;

/**
 * `version`: the members of `clientVersion` are those of kubeadm, which scripts compare with the version of
 * the kubelet and of the control plane; `kubeletadm` has the version of this program.
 * @see kubeadm 1.36 version, apimachinery pkg/version
 */
async function runVersion({ output, programName, runtime }: Services, format: 'text' | 'short' | 'json' | 'yaml'): Promise<ExitCode> {
  const { formatMinor, NEWEST_MINOR } = await import('../kubelet/catalogue/catalogue.ts');
  const info = versionInfo(runtime);
  const document = {
    clientVersion: info,
    kubeletadm: { version: VERSION, oldestKubelet: 'v1.20', newestKubelet: `v${formatMinor(NEWEST_MINOR)}` },
  };
  if (format === 'short') output.stdout(`${info.gitVersion}\n`);
  else if (format === 'json') output.stdout(`${printableJson(document, 2)}\n`);
  else if (format === 'yaml') output.stdout((await import('../codec/yaml-encode.ts')).encodeYaml(document));
  else if (programName === 'kubeadm') output.stdout(`kubeadm version: &version.Info{${goSyntax(info)}}\n`);
  else
    output.stdout(
      `kubeletadm ${VERSION} (supports kubelets 1.20 to ${formatMinor(NEWEST_MINOR)}; compatible with kubeadm ${KUBEADM_VERSION.gitVersion})\n`,
    );
  return 0;
}

function versionInfo({ nodeVersion, platform }: Services['runtime']) {
  return {
    ...KUBEADM_VERSION,
    gitCommit: `kubeletadm-${VERSION}`,
    gitTreeState: 'archive',
    // The value of Kubernetes for builds without a date.
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `none (Node.js ${nodeVersion})`,
    compiler: 'none',
    platform,
  } as const;
}

/** The members of the Go structure that JSON omits when they are empty. */
const EMPTY_MEMBERS = ['EmulationMajor', 'EmulationMinor', 'MinCompatibilityMajor', 'MinCompatibilityMinor'] as const;

/** The text of fmt's `%#v`, which scripts search for `GitVersion:"v1.36.2"`. */
function goSyntax({ major, minor, ...others }: ReturnType<typeof versionInfo>): string {
  const named = Object.entries(others).map(([name, value]) => [`${name.charAt(0).toUpperCase()}${name.slice(1)}`, value] as const);
  const all = [['Major', major], ['Minor', minor], ...EMPTY_MEMBERS.map((name) => [name, ''] as const), ...named] as const;
  return all.map(([name, value]) => `${name}:${JSON.stringify(value)}`).join(', ');
}
