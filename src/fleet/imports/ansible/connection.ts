import type { Position, Problem } from '../../../base/errors.ts';
import { present } from '../../../base/present.ts';
import { importIgnored } from '../../file/fleet-problems.ts';
import { isSecretName } from '../../file/inline-secrets.ts';
import { type InventoryHost, UNSUPPORTED_VALUE } from './inventory.ts';

const SSH_CONNECTIONS: ReadonlySet<string> = new Set([
  'ssh',
  'smart',
  'paramiko',
  'paramiko_ssh',
  'ansible.builtin.ssh',
  'ansible.builtin.paramiko_ssh',
]);

/**
 * Splits `user@address`, which Ansible passes to ssh as it is.
 * @returns the user, null without one, and the address
 */
export function splitUser(text: string): readonly [user: string | null, address: string] {
  const at = text.lastIndexOf('@');
  return at > 0 && at < text.length - 1 ? [text.slice(0, at), text.slice(at + 1)] : [null, text];
}

/**
 * @param userOfName the user in the name of the host, which is its address by default
 * @see ansible plugins/connection/ssh.py: of several variables for one setting the last wins; openssh ssh.c main: an
 * option overrides the user of the destination
 */
export function importConnection(
  { variables }: InventoryHost,
  { position, userOfName }: { readonly position: Position; readonly userOfName: string | null },
) {
  const text = (...names: readonly string[]): string | undefined => {
    const value = names
      .map((each) => variables.get(each))
      .findLast((each) => each !== undefined && each !== null && each !== UNSUPPORTED_VALUE);
    return value === undefined || typeof value === 'symbol' ? undefined : String(value);
  };
  const warnings: Problem[] = [];
  const warn = (message: string, hint?: string): void => {
    warnings.push({ ...importIgnored(message, hint), position });
  };
  const host = text('ansible_host', 'ansible_ssh_host');
  const [userOfHost, address] = host === undefined ? [userOfName, undefined] : splitUser(host);
  const user = text('ansible_user', 'ansible_ssh_user') ?? userOfHost ?? undefined;
  const port = text('ansible_port', 'ansible_ssh_port');
  const key = text('ansible_private_key_file', 'ansible_ssh_private_key_file');
  const isNumber = port !== undefined && /^[0-9]+$/.test(port);
  if ([...variables.keys()].some((variable) => /^ansible_.*pass(?:word)?$/.test(variable)))
    warn(
      'passwords are not read from the inventory',
      'Use SSH keys, or pass the password with --ssh-password-stdin or --sudo-password-stdin',
    );
  const method = text('ansible_become_method');
  if (method !== undefined && method !== 'sudo') warn(`ansible_become_method ${method} is not supported`, 'Use sudo');
  const bastion = jumpOf(
    ['ansible_ssh_args', 'ansible_ssh_common_args', 'ansible_ssh_extra_args'].map((each) => text(each) ?? ''),
    warn,
  );
  const ssh = present({
    user,
    port: isNumber ? Number(port) : port,
    identityFiles: key === undefined ? undefined : [key],
    bastion: bastion ?? undefined,
    become: isTrue(text('ansible_become')) && user !== 'root' ? ('sudo' as const) : undefined,
  });
  const connection = text('ansible_connection') ?? 'ssh';
  return {
    written: {
      ...(address === undefined ? {} : { address }),
      ...(Object.keys(ssh).length === 0 ? {} : { ssh }),
      variables: Object.fromEntries(
        [...variables].flatMap(([variable, value]) =>
          value === null || typeof value === 'symbol' || isSecretName(variable) || String(value).startsWith('$ANSIBLE_VAULT')
            ? []
            : [[variable, value]],
        ),
      ),
    },
    warnings,
    exclusionReason: SSH_CONNECTIONS.has(connection) ? null : `ansible_connection is ${connection}, but kubeletadm connects only over SSH`,
  };
}

function isTrue(text: string | undefined): boolean {
  return /^(?:true|yes|on|y|t|1|1\.0)$/i.test(text ?? '');
}

/** The jump host in ssh arguments: `-J host`, `-o ProxyJump=host`, `-o ProxyCommand="ssh -W %h:%p host"`. */
function jumpOf(texts: readonly string[], warn: (message: string, hint?: string) => void): string | null {
  const words = texts.flatMap((text) => splitHostLine(text) ?? []);
  let jump: string | null = null;
  for (const [i, word] of words.entries()) {
    const option = /^-o(.*)$/.exec(word)?.[1];
    const setting = option === '' ? words[i + 1] : option;
    const [, name = '', value = ''] = /^\s*(\w+)\s*[=\s]\s*(.*)$/s.exec(setting ?? '') ?? [];
    if (word === '-J') jump ??= words[i + 1] ?? null;
    else if (/^-J./.test(word)) jump ??= word.slice(2);
    else if (name.toLowerCase() === 'proxyjump') jump ??= value;
    else if (name.toLowerCase() === 'proxycommand') {
      const through = throughHost(value);
      if (through === null) warn('a ProxyCommand in the ssh arguments is not supported', 'Set ssh.bastion for the hosts in the fleet file');
      else jump ??= through;
    }
  }
  return jump;
}

/** `ssh … -W %h:%p [-p port] [-l user] host …`. */
function throughHost(command: string): string | null {
  const words = command.trim().split(/\s+/);
  if (!/(?:^|\/)ssh$/.test(words[0] ?? '') || !words.some((word) => word.startsWith('-W'))) return null;
  let [host, port, user]: (string | null)[] = [null, null, null];
  for (let i = 1; i < words.length; i++) {
    const word = words[i] as string;
    if (word === '-p') port = words[++i] ?? null;
    else if (word === '-l') user = words[++i] ?? null;
    else if (/^-[bcDEeFIiJLlmOopQRSWw]$/.test(word)) i++;
    else if (!word.startsWith('-')) host ??= word;
  }
  if (host === null) return null;
  return `${user === null ? '' : `${user}@`}${host}${port === null ? '' : `:${port}`}`;
}

/**
 * Splits the ssh arguments of an inventory into words: quotes of both kinds, backslashes; `#` begins a
 * comment, also inside a word.
 * @returns null when a quote is not closed or a backslash ends the line
 * @see Python's shlex.split(line, comments=True)
 */
function splitHostLine(line: string): readonly string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string;
    if (/[ \t\r\n]/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (char === '#') break;
    else if (char === '\\') {
      if (++i >= line.length) return null;
      word = (word ?? '') + line[i];
    } else if (char === '"' || char === "'") {
      const quoted = readQuoted(line, i);
      if (quoted === null) return null;
      word = (word ?? '') + quoted.text;
      i = quoted.end;
    } else word = (word ?? '') + char;
  }
  if (word !== null) words.push(word);
  return words;
}

/** The text between quotes; in double quotes a backslash escapes a quote or a backslash. */
function readQuoted(line: string, start: number): { readonly text: string; readonly end: number } | null {
  const quote = line[start] as string;
  let text = '';
  for (let i = start + 1; i < line.length; i++) {
    const char = line[i] as string;
    if (char === quote) return { text, end: i };
    if (char === '\\' && quote === '"' && (line[i + 1] === '"' || line[i + 1] === '\\')) text += line[++i];
    else text += char;
  }
  return null;
}
