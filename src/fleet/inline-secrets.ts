import type { Problem } from '../base/errors.ts';
import { formatFieldPath, type Step, showFieldPath } from '../codec/field-path.ts';
import { entryOf, type SourceDocument, type SourceNode } from '../codec/source.ts';
import { inlineSecret } from './fleet-problems.ts';

/** Members that would hold a secret, and where it belongs. Only looked for where this program would read them. */
const SECRET_MEMBERS: ReadonlyMap<string, string> = new Map([
  ['password', 'Give it by --ssh-password-stdin or KUBELETADM_SSH_PASSWORD, or better use a key'],
  ['sudoPassword', 'Give it by --sudo-password-stdin or KUBELETADM_SUDO_PASSWORD'],
  ['becomePassword', 'Give it by --sudo-password-stdin or KUBELETADM_SUDO_PASSWORD'],
  ['passphrase', 'Give it by KUBELETADM_SSH_PASSPHRASE, or use an agent'],
  ['privateKey', 'Name a file under identityFiles'],
  ['clientKeyData', 'Name a kubeconfig file under cluster.kubeconfig'],
]);

/** A digit in the second part tells a token from most host names. */
const TOKEN = /(?:^|[^a-z0-9])[a-z0-9]{6}\.(?=[a-z]*[0-9])[a-z0-9]{16}(?![a-z0-9])/;
/** Members that hold names of hosts. */
const HOST_NAMES: ReadonlySet<string> = new Set(['name', 'address', 'nodeName', 'endpoint', 'bastion']);
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
const HINT_TOKEN = 'Write token: {env: NAME} or token: {file: PATH} under cluster';

/** Finds what must not stand in a fleet file, wherever it stands. No value is in the messages. */
export function secretProblems(document: SourceDocument): readonly Problem[] {
  const problems: Problem[] = [];
  const found = (problem: Problem, offset: number, steps: readonly Step[]): void => {
    problems.push({ ...problem, position: document.positionAt(offset), path: showFieldPath(formatFieldPath(steps)) });
  };
  const token = entryOf(entryOf(document.root, 'cluster')?.value ?? null, 'token');
  if (token?.value.kind === 'scalar' && token.value.scalar.type !== 'null')
    found(inlineSecret('a bootstrap token', HINT_TOKEN), token.value.offset, ['cluster', 'token']);
  const walk = (node: SourceNode, steps: readonly Step[]): void => {
    if (node.kind === 'list') for (const [i, item] of node.items.entries()) walk(item, [...steps, i]);
    if (node.kind === 'map') {
      for (const { key, keyOffset, value } of node.entries) {
        const hint = SECRET_MEMBERS.get(key);
        // Below kubeletConfiguration and variables names are others' own.
        if (hint !== undefined && !steps.includes('kubeletConfiguration'))
          found(inlineSecret('a secret', hint), keyOffset, [...steps, key]);
        else if (value !== token?.value) walk(value, [...steps, key]);
      }
    }
    if (node.kind !== 'scalar' || node.text.length < 23) return;
    if (PRIVATE_KEY.test(node.text)) found(inlineSecret('a private key', 'Name its file under identityFiles'), node.offset, steps);
    else if (TOKEN.test(node.text) && !HOST_NAMES.has(String(steps.at(-1))))
      found(inlineSecret('what looks like a bootstrap token', HINT_TOKEN), node.offset, steps);
  };
  if (document.root !== null) walk(document.root, []);
  return problems;
}
