import type { Problem } from '../../base/errors.ts';
import { findSecret } from '../../base/text/find-secret.ts';
import { formatFieldPath, type PathSegment, showFieldPath } from '../../codec/field-path.ts';
import { entryOf, type SourceDocument, type SourceNode } from '../../codec/source.ts';
import { inlineSecret } from './fleet-problems.ts';

/**
 * Members that would hold a secret, with the right place for it. Only members read by kubeletadm are checked.
 */
const SECRET_MEMBERS: ReadonlyMap<string, string> = new Map([
  ['password', 'Use an SSH key. If the host needs a password, use --ssh-password-stdin or KUBELETADM_SSH_PASSWORD'],
  ['sudoPassword', 'Use --sudo-password-stdin or KUBELETADM_SUDO_PASSWORD'],
  ['becomePassword', 'Use --sudo-password-stdin or KUBELETADM_SUDO_PASSWORD'],
  ['passphrase', 'Use KUBELETADM_SSH_PASSPHRASE, or an SSH agent'],
  ['privateKey', 'List the key file in identityFiles'],
  ['clientKeyData', 'Set cluster.kubeconfig to a kubeconfig file'],
]);

/** A digit in the second part distinguishes a token from most host names. */
const TOKEN = /(?:^|[^a-z0-9])[a-z0-9]{6}\.(?=[a-z]*[0-9])[a-z0-9]{16}(?![a-z0-9])/;
/** Members that contain host names. */
const HOST_NAMES: ReadonlySet<string> = new Set(['name', 'address', 'nodeName', 'endpoint', 'bastion']);
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
const HINT_PROXY = 'Set proxy.credentials to {env: NAME} or {file: PATH}';
const HINT_HOOK = 'Set env of the hook to {NAME: {env: VARIABLE}} or {NAME: {file: PATH}}, and use $NAME in a command that is a string';
const HINT_GATE = 'Let the command read the secret from a file or from a variable of its environment';
const HINT_TOKEN = 'Set cluster.token to {env: NAME} or {file: PATH}';

/** Finds secrets anywhere in a fleet file. The messages contain no values. */
export function secretProblems(document: SourceDocument): readonly Problem[] {
  const problems: Problem[] = [];
  const found = (problem: Problem, offset: number, steps: readonly PathSegment[]): void => {
    problems.push({ ...problem, position: document.positionAt(offset), path: showFieldPath(formatFieldPath(steps)) });
  };
  const token = entryOf(entryOf(document.root, 'cluster')?.value ?? null, 'token');
  if (token?.value.kind === 'scalar' && token.value.scalar.type !== 'null')
    found(inlineSecret('a bootstrap token', HINT_TOKEN), token.value.offset, ['cluster', 'token']);
  const walk = (node: SourceNode, steps: readonly PathSegment[]): void => {
    if (node.kind === 'list') for (const [i, item] of node.items.entries()) walk(item, [...steps, i]);
    if (node.kind === 'map') {
      for (const { key, keyOffset, value } of node.entries) {
        const hint = SECRET_MEMBERS.get(key);
        // Names below kubeletConfiguration and variables are not defined by kubeletadm.
        if (hint !== undefined && !steps.includes('kubeletConfiguration'))
          found(inlineSecret('a secret', hint), keyOffset, [...steps, key]);
        else if (key === 'credentials' && steps.at(-1) === 'proxy' && value.kind === 'scalar' && value.scalar.type !== 'null')
          found(inlineSecret('a user or a password', HINT_PROXY), value.offset, [...steps, key]);
        else if (steps.at(-1) === 'env' && steps.includes('hooks') && value.kind === 'scalar' && value.scalar.type !== 'null')
          found(inlineSecret('the value of a variable', HINT_HOOK), value.offset, [...steps, key]);
        else if (key === 'command' && steps.includes('hooks') && findSecret(commandText(value)) !== null)
          found(inlineSecret('a text that looks like a secret', HINT_HOOK), value.offset, [...steps, key]);
        else if (key === 'command' && steps.includes('gates') && findSecret(commandText(value)) !== null)
          found(inlineSecret('a text that looks like a secret', HINT_GATE), value.offset, [...steps, key]);
        else if (value !== token?.value) walk(value, [...steps, key]);
      }
    }
    if (node.kind !== 'scalar' || node.text.length < 23) return;
    if (PRIVATE_KEY.test(node.text)) found(inlineSecret('a private key', 'List the file of the key in identityFiles'), node.offset, steps);
    else if (TOKEN.test(node.text) && !HOST_NAMES.has(String(steps.at(-1))))
      found(inlineSecret('a value that looks like a bootstrap token', HINT_TOKEN), node.offset, steps);
  };
  if (document.root !== null) walk(document.root, []);
  return problems;
}

function commandText(node: SourceNode): string {
  if (node.kind === 'list') return node.items.map(commandText).join(' ');
  return node.kind === 'scalar' ? node.text : '';
}

const SECRET_NAME = /pass(?:word|phrase|wd)|(?:^|_)pass(?:_|$)|secret|(?:^|_)token(?:_|$)|vault|private_?key(?:_?data)?$|api_?key/i;

/** Whether a variable of this name may hold a secret: such variables are neither imported nor shown. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}
