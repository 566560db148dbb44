import { type CommandHelp, commandHelp, type HelpSection } from './command-help.ts';
import { allBelow, documentedCommands, sameSection, sharedSections } from './shared-sections.ts';

/** Each item of a help text is on one line, or has its term on a line of its own. */
const UNWRAPPED = 10_000;

/**
 * Manual pages (section 1) of the program and of each of its commands, from their help.
 * @param version version of the program
 * @returns roff sources by file name: `kubeletadm.1`, `kubeletadm-init.1`
 */
export async function manPages(version: string): Promise<ReadonlyMap<string, string>> {
  const program = await commandHelp(UNWRAPPED);
  const shared = sharedSections(program);
  const pages = program.commands.map((command): [string, string] => [
    `kubeletadm-${command.path}.1`,
    manPage(`kubeletadm-${command.path}`, command, [
      ...documentedCommands(command).flatMap((each) => commandText(each, { isTop: each === command, shared })),
      '.SH SEE ALSO',
      '.BR kubeletadm (1)',
    ]),
  ]);
  return new Map([['kubeletadm.1', manPage('kubeletadm', program, programText(program, shared))], ...pages]);

  function manPage(name: string, { description }: CommandHelp, body: readonly string[]): string {
    const lines = [
      `.TH "${name.toUpperCase()}" "1" "" "kubeletadm ${version}" "kubeletadm"`,
      // Lines are neither stretched nor hyphenated.
      '.ad l',
      '.nh',
      '.SH NAME',
      `${escaped(name)} \\- ${escaped(description)}`,
      ...body,
    ];
    return `${lines.join('\n')}\n`;
  }
}

function programText(program: CommandHelp, shared: readonly HelpSection[]): readonly string[] {
  return [
    '.SH SYNOPSIS',
    `.B ${escaped(program.usage)}`,
    '.SH COMMANDS',
    ...program.commands.flatMap(({ path, description }) => ['.TP', `.BR ${escaped(`kubeletadm-${path}`)} (1)`, line(description)]),
    ...shared.flatMap((section) => [`.SH ${titleOf(section).toUpperCase()}`, ...items(section.lines)]),
    '.SH ERRORS',
    line('Errors and warnings end with a code in brackets. kubeletadm explain CODE prints its cause and its fix.'),
  ];
}

function titleOf({ heading }: HelpSection): string {
  return heading === 'SSH' ? 'SSH Options' : heading;
}

function commandText(
  command: CommandHelp,
  { isTop, shared }: { readonly isTop: boolean; readonly shared: readonly HelpSection[] },
): readonly string[] {
  const isShared = (section: HelpSection): boolean => shared.some((each) => sameSection(each, section));
  const own = command.sections.filter((section) => !['Commands', 'Phases'].includes(section.heading) && !isShared(section));
  const see = command.sections.filter(isShared).map(titleOf);
  const below = command.isPhases ? command.commands.flatMap(allBelow) : command.commands;
  const title = (heading: string): string => (isTop ? `.SH ${escaped(heading).toUpperCase()}` : `.SS ${escaped(heading)}`);
  return [
    ...(isTop ? ['.SH SYNOPSIS'] : [`.SH ${escaped(`kubeletadm ${command.path}`).toUpperCase()}`]),
    `.B ${escaped(`kubeletadm ${command.usage}`)}`,
    ...(isTop ? ['.SH DESCRIPTION'] : ['.PP']),
    line(`${command.description}.`),
    ...own.flatMap((section) => {
      if (section.heading === '') return ['.PP', ...section.lines.map(line)];
      if (section.heading === 'Examples')
        return [title('Examples'), '.nf', ...section.lines.map((each) => line(each.replace(/^ {2}/, ''))), '.fi'];
      return [title(section.heading), ...items(section.lines)];
    }),
    ...(see.length === 0 ? [] : ['.PP', line(`${see.join(' and ')}: see kubeletadm(1).`)]),
    ...(below.length === 0
      ? []
      : [
          title(command.isPhases ? 'Phases' : 'Commands'),
          ...below.flatMap(({ path, description }) => ['.TP', `.B ${escaped(path)}`, line(description)]),
        ]),
  ];
}

/** Terms and their descriptions. */
function items(lines: readonly string[]): readonly string[] {
  return lines.flatMap((each) => {
    const [, term = '', description = ''] = /^ {2}(\S+(?: \S+)*)(?: {2,}(\S.*))?$/.exec(each) ?? [];
    if (term === '') return [line(each.trim())];
    return ['.TP', `.B ${escaped(term)}`, ...(description === '' ? [] : [line(description)])];
  });
}

/** A line of text, which roff must not read as a request. */
function line(text: string): string {
  return /^[.']/.test(text) ? `\\&${escaped(text)}` : escaped(text);
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
}
