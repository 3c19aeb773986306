import {
  CellStyleModule,
  ClientSideRowModelApiModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  DateFilterModule,
  HighlightChangesModule,
  ModuleRegistry,
  NumberFilterModule,
  RenderApiModule,
  RowApiModule,
  RowSelectionModule,
  RowStyleModule,
  ScrollApiModule,
  TextFilterModule,
  colorSchemeVariable,
  themeQuartz,
} from 'ag-grid-community';

// One by one, because all of them together are half as large again.
ModuleRegistry.registerModules([
  CellStyleModule,
  ClientSideRowModelApiModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  DateFilterModule,
  HighlightChangesModule,
  NumberFilterModule,
  RenderApiModule,
  RowApiModule,
  RowSelectionModule,
  RowStyleModule,
  ScrollApiModule,
  TextFilterModule,
]);

export const ROW_HEIGHT = 30;

export const gridTheme = themeQuartz.withPart(colorSchemeVariable).withParams({
  accentColor: 'var(--accent)',
  backgroundColor: 'var(--card)',
  foregroundColor: 'var(--text)',
  headerBackgroundColor: 'var(--raised)',
  borderColor: 'var(--line)',
  valueChangeValueHighlightBackgroundColor: 'color-mix(in srgb, var(--good) 45%, transparent)',
  fontFamily: 'inherit',
  fontSize: 13,
  cellHorizontalPadding: 10,
  rowHeight: ROW_HEIGHT,
  headerHeight: 34,
  wrapperBorder: false,
  wrapperBorderRadius: 0,
});
