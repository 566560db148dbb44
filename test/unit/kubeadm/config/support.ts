import { formatProblem } from '../../../../src/base/errors.ts';
import { CONFIG_KINDS } from '../../../../src/kubeadm/config/document-header.ts';
import { type LoadedConfig, loadConfig } from '../../../../src/kubeadm/config/load.ts';
import type { ConfigKind } from '../../../../src/kubeadm/config/model.ts';

const HEADERS = {
  init: 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n',
  cluster: 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n',
  join: 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n',
  reset: 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\n',
  upgrade: 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: UpgradeConfiguration\n',
  init3: 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\n',
  cluster3: 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n',
  join3: 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\n',
} as const;

export type DocumentName = keyof typeof HEADERS;

/** A document of a kind: two header lines, then the body from line 3 on. */
export function documentOf(name: DocumentName, body = ''): string {
  return HEADERS[name] + body.replace(/\n?$/, body === '' ? '' : '\n');
}

/** Loads text as `f.yaml`, with all kinds by default. */
export function load(text: string, kinds: readonly ConfigKind[] = CONFIG_KINDS): LoadedConfig {
  return loadConfig(text, 'f.yaml', { kinds, allowDeprecated: true });
}

/** All problems as lines; warnings begin with `warning: `. */
export function linesOf({ problems }: Pick<LoadedConfig, 'problems'>): readonly string[] {
  return problems.map((problem) => `${problem.severity === 'warning' ? 'warning: ' : ''}${formatProblem(problem)}`);
}

/** The codes of the errors, without warnings. */
export function errorCodes({ problems }: Pick<LoadedConfig, 'problems'>): readonly string[] {
  return problems.filter(({ severity }) => severity !== 'warning').map(({ code }) => code);
}

/** A valid discovery section for documents that test other fields. */
export const DISCOVERY =
  'discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "10.0.0.1:6443", unsafeSkipCAVerification: true}}\n';
