import { memberOf, textOf } from '../members.ts';
import type { KindRules } from './kind.ts';

/** Events can be selected by their involved object. */
export const events: KindRules = {
  members: [
    'action',
    'count',
    'eventTime',
    'firstTimestamp',
    'involvedObject',
    'lastTimestamp',
    'message',
    'reason',
    'related',
    'reportingComponent',
    'reportingInstance',
    'series',
    'source',
    'type',
  ],
  createOnUpdate: true,
  fields: (event) => {
    const about = memberOf(event, 'involvedObject');
    return {
      'involvedObject.kind': textOf(about, 'kind'),
      'involvedObject.namespace': textOf(about, 'namespace'),
      'involvedObject.name': textOf(about, 'name'),
      'involvedObject.uid': textOf(about, 'uid'),
      reason: textOf(event, 'reason'),
      reportingComponent: textOf(event, 'reportingComponent'),
      source: textOf(memberOf(event, 'source'), 'component'),
      type: textOf(event, 'type'),
    };
  },
};
