import type { ReportEvent, Reporter } from '../../src/base/reporter.ts';

export interface RecordingReporter extends Reporter {
  readonly events: readonly ReportEvent[];
  /** The codes of the reported messages, in order. */
  codes(): readonly string[];
  /** The messages of one code, in order. */
  messages(code: string): readonly string[];
}

/** Keeps all reported messages. */
export function recordingReporter(): RecordingReporter {
  const events: ReportEvent[] = [];
  return {
    events,
    report: (event) => {
      events.push(event);
    },
    codes: () => events.map(({ code }) => code),
    messages: (code) => events.filter((event) => event.code === code).map(({ message }) => message),
  };
}
