import { execa } from 'execa';

/** A flag of kubeadm: `type` is pflag's name of it, `default` as help prints it. */
export interface KubeadmFlag {
  readonly name: string;
  readonly shorthand?: string;
  readonly type: string;
  readonly default?: string;
}

/**
 * The flags of each command by its path without the program name. The empty path is the program, whose flags all commands
 * have.
 */
export type KubeadmCommandLine = Readonly<Record<string, readonly KubeadmFlag[]>>;

/** Walks `--help` of kubeadm and all its subcommands. */
export async function walkKubeadm(kubeadm: string): Promise<KubeadmCommandLine> {
  const found: Record<string, readonly KubeadmFlag[]> = {};
  const visit = async (path: readonly string[]): Promise<void> => {
    const { stdout } = await execa(kubeadm, [...path, '--help'], { env: { PATH: process.env.PATH }, extendEnv: false });
    const { commands, flags } = readHelp(stdout);
    const inherited = new Set((found[''] ?? []).map((flag) => JSON.stringify(flag)));
    found[path.join(' ')] = flags.filter((flag) => !inherited.has(JSON.stringify(flag)));
    for (const command of commands) await visit([...path, command]);
  };
  await visit([]);
  return found;
}

/** A command line as the text of the recording: one flag per line. */
export function renderCommandLine(commands: KubeadmCommandLine): string {
  const entries = Object.entries(commands).map(([path, flags]) => {
    const lines = flags.map((flag) => `\n    ${JSON.stringify(flag)}`).join(',');
    return `  ${JSON.stringify(path)}: [${lines}${lines === '' ? '' : '\n  '}]`;
  });
  return `{\n${entries.join(',\n')}\n}\n`;
}

/** The subcommands and flags that a help text of cobra lists, global flags included. */
export function readHelp(text: string): { readonly commands: readonly string[]; readonly flags: readonly KubeadmFlag[] } {
  const [commands, flags]: [string[], KubeadmFlag[]] = [[], []];
  let section = '';
  for (const line of text.split('\n')) {
    section = /^([A-Z][A-Za-z ]*):/.exec(line)?.[1] ?? section;
    const command = section === 'Available Commands' ? /^ {2}(\S+)/.exec(line)?.[1] : undefined;
    if (command !== undefined) commands.push(command);
    const flag = /^(?:Global )?Flags$/.test(section) ? readFlag(line) : null;
    if (flag !== null) flags.push(flag);
  }
  return { commands, flags: flags.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** `  -o, --output string   Output format (default "text")` */
function readFlag(line: string): KubeadmFlag | null {
  const match = /^ {2,6}(?:-(\w), )?--(\S+)(?: (\S+))?(?: {2,}(.*))?$/.exec(line);
  if (match === null) return null;
  const [, shorthand, name = '', type = 'bool', usage = ''] = match;
  const standard = /\(default (.*)\)$/.exec(usage)?.[1];
  return { name, ...(shorthand === undefined ? {} : { shorthand }), type, ...(standard === undefined ? {} : { default: standard }) };
}
