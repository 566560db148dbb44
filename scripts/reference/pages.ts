import { type CommandHelp, commandHelp, type HelpSection } from './command-help.ts';
import { kubeletFieldsPage } from './kubelet-fields.ts';
import { allBelow, documentedCommands, sameSection, sharedSections } from './shared-sections.ts';

const WIDTH = 100;
/**
 * The reference of all commands, from their help.
 * @returns the pages by their path in the repository: `docs/reference/README.md`, one for each command of the program,
 * and `kubelet-fields.md`
 */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  const program = await commandHelp(WIDTH);
  const shared = sharedSections(program);
  const pages = program.commands.map((command): [string, string] => [`docs/reference/${command.path}.md`, page(command, shared)]);
  return new Map([
    ['docs/reference/README.md', index(program, shared)],
    ['docs/reference/kubelet-fields.md', await kubeletFieldsPage()],
    ...pages,
  ]);
}

function index(program: CommandHelp, shared: readonly HelpSection[]): string {
  const rows = program.commands.map(({ path, description }) => `| [${path}](${path}.md) | ${description} |`);
  return `# Reference of all commands

One page for each command, with the text of \`--help\`. \`npm run reference\` writes these pages from the commands; a test
compares them. [Using kubeletadm](../usage.md) explains what all commands have in common.

| Command | Purpose |
| --- | --- |
${rows.join('\n')}

[kubelet-fields](kubelet-fields.md) lists the dangerous fields of KubeletConfiguration, and the usual values of others.
${shared.map((section) => `\n## ${titleOf(section)}\n\n${block(section.lines)}\n`).join('')}`;
}

function titleOf({ heading }: HelpSection): string {
  return heading === 'SSH' ? 'SSH options' : 'Global options';
}

function page(command: CommandHelp, shared: readonly HelpSection[]): string {
  return `# kubeletadm ${command.path}\n${documentedCommands(command)
    .map((each) => entry(each, command, shared))
    .join('')}`;
}

function entry(command: CommandHelp, top: CommandHelp, shared: readonly HelpSection[]): string {
  const isShared = (section: HelpSection): boolean => shared.some((each) => sameSection(each, section));
  const own = command.sections.filter(
    (section) => section.heading !== 'Examples' && section.heading !== 'Commands' && section.heading !== 'Phases' && !isShared(section),
  );
  const links = command.sections
    .filter(isShared)
    .map((section) => `[${titleOf(section)}](README.md#${titleOf(section).toLowerCase().replace(' ', '-')})`);
  const examples = command.sections.find(({ heading }) => heading === 'Examples');
  const title = command === top ? '' : `\n## kubeletadm ${command.path}\n`;
  return [
    title,
    `${escaped(command.description)}.`,
    block([
      `kubeletadm ${command.usage}`,
      ...own.filter(({ heading }) => heading !== '').flatMap(({ heading, lines }) => ['', `${heading}:`, ...lines]),
    ]),
    ...own
      .filter(({ heading }) => heading === '')
      .map(({ lines }) => (lines.some((line) => line.startsWith(' ')) ? block(lines) : lines.map(escaped).join('\n'))),
    command.sections.length > 0 && links.length > 0 ? `Also: ${links.join(', ')}.` : '',
    ...(examples === undefined ? [] : [`Examples:\n\n${block(examples.lines, 'sh')}`]),
    ...(command.isPhases ? [phases(command)] : subcommands(command)),
  ]
    .filter((part) => part !== '')
    .map((part) => `\n${part.trim()}\n`)
    .join('');
}

function phases(command: CommandHelp): string {
  const rows = command.commands
    .flatMap(allBelow)
    .map(({ path, description }) => `| \`${path.slice(command.path.length + 1)}\` | ${escaped(description)} |`);
  return `Phases, each with the options above:\n\n| Phase | Purpose |\n| --- | --- |\n${rows.join('\n')}`;
}

function subcommands({ commands }: CommandHelp): readonly string[] {
  if (commands.length === 0) return [];
  const rows = commands.map(({ path, description }) => `| [${path}](#kubeletadm-${path.replaceAll(' ', '-')}) | ${escaped(description)} |`);
  return [`| Subcommand | Purpose |\n| --- | --- |\n${rows.join('\n')}`];
}

function block(lines: readonly string[], language = 'text'): string {
  const indent = Math.min(...lines.filter((line) => line !== '').map((line) => line.length - line.trimStart().length));
  return `\`\`\`${language}\n${lines.map((line) => line.slice(indent)).join('\n')}\n\`\`\``;
}

/** Characters that Markdown would interpret. */
function escaped(text: string): string {
  return text.replace(/[<>|*_]/g, (character) => `\\${character}`);
}
